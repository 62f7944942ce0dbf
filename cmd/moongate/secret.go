package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/auth"
)

// demoSecret is the secret that the shipped configuration signs tokens with until it is told another. Everybody knows it, so run
// refuses it unless it serves the demo.
const demoSecret = "moongate-demo-secret-that-everybody-knows-change-me"

// tokenSecret is what the jwt filter of a configuration file verifies with. Without such a file it is the demo's secret.
func tokenSecret(file string) ([]byte, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return []byte(demoSecret), nil
	}
	c, err := conf.Load(file, conf.Options{})
	if err != nil {
		return nil, err
	}
	if secret := jwtSecret(c); secret != nil {
		return secret, nil
	}
	return nil, fmt.Errorf("%s has no filter of the script jwt with a secret: give --secret", file)
}

// jwtSecret is what the first filter of the script jwt verifies with, nil when there is none with a secret.
func jwtSecret(c *conf.Config) []byte {
	for _, f := range c.Filters {
		if v, ok := f.Settings.Get("secret"); ok && f.Script == "jwt" {
			if text, ok := v.V.(string); ok {
				return []byte(text)
			}
		}
	}
	return nil
}

// signToken makes a token of a user that holds for life from now.
func signToken(secret []byte, user, role string, life time.Duration) (string, error) {
	now := time.Now()
	return auth.Sign(secret, map[string]any{"sub": user, "role": role, "iat": now.Unix()}, now.Add(life))
}

// refuseDemoSecret finds every place where a configuration trusts what everybody can sign.
func refuseDemoSecret(c *conf.Config) error {
	var errs conf.Errors
	look := func(path string, settings *conf.Table) {
		for key, v := range settings.All() {
			if text, ok := v.V.(string); ok && text == demoSecret {
				errs.Add(v.Pos, path+"."+key, "is the secret of the demo, which everybody knows: set one of your own, or run with --demo")
			}
		}
	}
	for _, f := range c.Filters {
		look("filter."+f.Name, f.Settings)
	}
	for _, r := range c.Routes {
		for _, f := range r.Filters {
			look("route."+r.Name+".filter."+f.Name, f.Settings)
		}
	}
	return errs.Err()
}
