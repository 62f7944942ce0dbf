package main

import (
	"embed"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed nginx/*.conf
var nginxFiles embed.FS

// nginxValues are what the configurations leave open.
type nginxValues struct {
	Dir, Secret                             string
	Listen, Upstream1, Upstream2, Upstream3 string
	Cert, Key                               string
}

// startNginx runs nginx on one CPU with the configuration of that name and one worker.
func (b *bench) startNginx(name, cpu string) (*process, error) {
	conf, err := template.ParseFS(nginxFiles, "nginx/*.conf")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, name+".conf")
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	err = conf.ExecuteTemplate(out, name+".conf", nginxValues{
		Dir: filepath.Join(b.dir, name), Secret: secret, Listen: address(nginxPort),
		Upstream1: address(upstreamPort), Upstream2: address(upstreamPort + 1), Upstream3: address(upstreamPort + 2),
		Cert: filepath.Join(b.dir, certFile), Key: filepath.Join(b.dir, keyFile),
	})
	if err != nil {
		return nil, err
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return start(cpu, filepath.Join(b.dir, name+".out"), "nginx", "-c", file)
}
