package gateway

import (
	"fmt"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/server"
)

var listenProtocols = map[string]server.Protocol{conf.ListenAuto: server.Either, conf.ProtocolH1: server.HTTP1, conf.ProtocolH2: server.HTTP2}

// places are the names under which listeners are kept over reloads: their addresses. Several may let the system choose their ports on one
// address; they are told apart by their order.
func places(c *conf.Config) []string {
	seen := map[string]int{}
	var list []string
	for i := range c.Listeners {
		place := c.Listeners[i].Address
		if seen[place]++; seen[place] > 1 {
			place = fmt.Sprintf("%s, number %d", place, seen[place])
		}
		list = append(list, place)
	}
	return list
}

// buildListeners prepares the handshakes of the listeners that speak TLS. What has not changed is prev's, with its sessions.
func (g *Generation) buildListeners(prev *Generation, errs *conf.Errors) {
	g.tls = map[string]*server.TLS{}
	for i, place := range places(g.config) {
		l := &g.config.Listeners[i]
		if !l.TLS.On {
			continue
		}
		if prev != nil && prev.secures(place, l) {
			g.tls[place] = prev.tls[place]
			continue
		}
		g.tls[place] = g.newTLS(fmt.Sprintf("listener[%d].tls", i), &l.TLS, errs)
	}
}

// proxies are those whose connections begin with a PROXY header.
func proxies(l *conf.Listener) *server.Proxies {
	if len(l.ProxyProtocol) == 0 && !l.ProxyUnix {
		return nil
	}
	return &server.Proxies{Networks: l.ProxyProtocol, Unix: l.ProxyUnix}
}

// secures tells whether this generation already speaks TLS at that place as l wants it.
func (g *Generation) secures(place string, l *conf.Listener) bool {
	for i, at := range places(g.config) {
		if own := &g.config.Listeners[i]; at == place {
			return own.TLS.On && own.TLS.Equal(l.TLS)
		}
	}
	return false
}

func (g *Generation) newTLS(key string, t *conf.ListenerTLS, errs *conf.Errors) *server.TLS {
	o := server.TLSOptions{Required: t.Client == conf.ClientRequired}
	for i, c := range t.Certificates {
		cert, err := server.ParseCertificate([]byte(c.Cert.Text), []byte(c.Key.Text))
		if err != nil {
			errs.Add(c.Cert.Pos, fmt.Sprintf("%s.certificates[%d]", key, i), "%s with %s: %s", c.Cert.Path, c.Key.Path, err)
			continue
		}
		if !cert.Valid(time.Now()) {
			g.warnings.Add(c.Cert.Pos, fmt.Sprintf("%s.certificates[%d].cert", key, i), "%s is not valid today: clients will refuse it", c.Cert.Path)
		}
		o.Certificates = append(o.Certificates, cert)
	}
	if len(t.SelfSigned) > 0 {
		cert, err := server.SelfSigned(t.SelfSigned)
		if err != nil {
			errs.Add(t.Pos, key+".self_signed", "%s", err)
		} else {
			o.Certificates = append(o.Certificates, cert)
		}
	}
	if t.ClientCA.Path != "" {
		var err error
		if o.Clients, err = server.ParseAuthorities([]byte(t.ClientCA.Text)); err != nil {
			errs.Add(t.ClientCA.Pos, key+".client_ca", "%s %s", t.ClientCA.Path, err)
		}
	}
	if len(o.Certificates) == 0 {
		return nil
	}
	return server.NewTLS(o)
}
