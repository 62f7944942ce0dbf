// Package ldaptest is a small directory that tests ask. It knows binds, searches by equality and presence, and no more of LDAP (RFC 4511).
package ldaptest

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
)

// Entry is what the directory knows of one name.
type Entry struct {
	DN         string
	Password   string
	Attributes map[string][]string
}

// Server is a directory that listens. Its fields are set before Start.
type Server struct {
	Entries []Entry
	// Binds counts binds with a password.
	Binds atomic.Int64

	listener net.Listener
	group    sync.WaitGroup
	mu       sync.Mutex
	open     map[net.Conn]bool
}

// Start listens on a free port of loopback.
func (s *Server) Start() error {
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	s.open = map[net.Conn]bool{}
	s.group.Go(func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[c] = true
			s.mu.Unlock()
			s.group.Go(func() { s.serve(c) })
		}
	})
	return nil
}

// URL is the directory's address.
func (s *Server) URL() string { return "ldap://" + s.listener.Addr().String() }

// Close ends the directory and every connection to it.
func (s *Server) Close() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.group.Wait()
}

func (s *Server) serve(c net.Conn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.open, c)
		s.mu.Unlock()
	}()
	for {
		message, err := ber.ReadPacket(c)
		if err != nil || len(message.Children) < 2 {
			return
		}
		id, op := message.Children[0].Value, message.Children[1]
		var answers []*ber.Packet
		switch op.Tag {
		case ldap.ApplicationBindRequest:
			answers = append(answers, result(ldap.ApplicationBindResponse, s.bind(op)))
		case ldap.ApplicationSearchRequest:
			answers = append(answers, s.search(op)...)
			answers = append(answers, result(ldap.ApplicationSearchResultDone, ldap.LDAPResultSuccess))
		default:
			return
		}
		for _, a := range answers {
			envelope := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSequence, nil, "")
			envelope.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, id, ""))
			envelope.AppendChild(a)
			if _, err := c.Write(envelope.Bytes()); err != nil {
				return
			}
		}
	}
}

func result(tag ber.Tag, code uint16) *ber.Packet {
	p := ber.Encode(ber.ClassApplication, ber.TypeConstructed, tag, nil, "")
	p.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagEnumerated, uint64(code), ""))
	p.AppendChild(text(""))
	p.AppendChild(text(""))
	return p
}

func text(s string) *ber.Packet {
	return ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, s, "")
}

func (s *Server) bind(op *ber.Packet) uint16 {
	name, password := op.Children[1].Data.String(), op.Children[2].Data.String()
	if name == "" && password == "" {
		return ldap.LDAPResultSuccess
	}
	s.Binds.Add(1)
	wanted, err := ldap.ParseDN(name)
	if err != nil {
		return ldap.LDAPResultInvalidDNSyntax
	}
	for _, e := range s.Entries {
		if dn, err := ldap.ParseDN(e.DN); err == nil && dn.EqualFold(wanted) && password != "" && e.Password == password {
			return ldap.LDAPResultSuccess
		}
	}
	return ldap.LDAPResultInvalidCredentials
}

func (s *Server) search(op *ber.Packet) (found []*ber.Packet) {
	base := strings.ToLower(op.Children[0].Data.String())
	for _, e := range s.Entries {
		if !strings.HasSuffix(strings.ToLower(e.DN), base) || !matches(e, op.Children[6]) {
			continue
		}
		p := ber.Encode(ber.ClassApplication, ber.TypeConstructed, ldap.ApplicationSearchResultEntry, nil, "")
		p.AppendChild(text(e.DN))
		attributes := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSequence, nil, "")
		for name, values := range e.Attributes {
			a := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSequence, nil, "")
			a.AppendChild(text(name))
			set := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSet, nil, "")
			for _, value := range values {
				set.AppendChild(text(value))
			}
			a.AppendChild(set)
			attributes.AppendChild(a)
		}
		p.AppendChild(attributes)
		found = append(found, p)
	}
	return found
}

func matches(e Entry, filter *ber.Packet) bool {
	switch filter.Tag {
	case ldap.FilterAnd:
		for _, f := range filter.Children {
			if !matches(e, f) {
				return false
			}
		}
		return true
	case ldap.FilterEqualityMatch:
		return has(e, filter.Children[0].Data.String(), filter.Children[1].Data.String())
	case ldap.FilterPresent:
		return true
	}
	return false
}

func has(e Entry, name, value string) bool {
	for known, values := range e.Attributes {
		if !strings.EqualFold(known, name) {
			continue
		}
		for _, v := range values {
			if strings.EqualFold(v, value) {
				return true
			}
		}
	}
	return false
}
