package server

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/moongate/moongate/core/proxyproto"
)

// Proxies are the peers of a listener that begin each connection with a PROXY header. What others send is taken for HTTP, where such a header
// is a malformed request. It is immutable.
type Proxies struct {
	Networks []netip.Prefix
	Unix     bool // whoever comes over a Unix socket
}

func (p *Proxies) include(nc net.Conn) bool {
	if _, unix := nc.(*net.UnixConn); unix {
		return p.Unix
	}
	peer := remoteOf(nc).Addr().WithZone("")
	for _, network := range p.Networks {
		if network.Contains(peer) {
			return true
		}
	}
	return false
}

// accept serves a connection, once its proxy has said whose it is.
func (s *Server) accept(nc net.Conn, by *listening) {
	if by.Proxies == nil || !by.Proxies.include(nc) {
		s.start(nc, by)
		return
	}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		said, err := s.readProxied(nc)
		if err != nil {
			s.log.Debug("no connection for a proxy", "client", nc.RemoteAddr().String(), "error", err)
			_ = nc.Close()
			return
		}
		mine := *by
		mine.said = said
		s.start(nc, &mine)
	}()
}

// readProxied reads the header within the time for a request's head, or until the server is shut down.
func (s *Server) readProxied(nc net.Conn) (proxyproto.Header, error) {
	_ = nc.SetReadDeadline(time.Now().Add(s.settings.Load().HeadTimeout))
	stop := context.AfterFunc(s.welcoming, func() { _ = nc.Close() })
	defer stop()
	said, err := proxyproto.Read(nc)
	if err == nil {
		err = nc.SetReadDeadline(time.Time{})
	}
	return said, err
}

// ends are the addresses of a connection: what its proxy said, or what the socket says.
func (by *listening) ends(nc net.Conn) (remote, local netip.AddrPort) {
	if by.said.Known() {
		return by.said.Source, by.said.Destination
	}
	return remoteOf(nc), addrOf(nc.LocalAddr())
}
