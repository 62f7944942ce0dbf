package core

// Kind is what the gateway knows a header name as. It is computed once, when a line is parsed or set, so that everything that
// asks later compares a byte and not a name.
type Kind uint8

// The names that the gateway treats in a way of its own; all others are KindOther.
const (
	KindOther Kind = iota
	KindHost
	KindConnection
	KindContentLength
	KindTransferEncoding
	KindExpect
	KindUpgrade
	KindTrailer
	KindTE
	KindHop // Keep-Alive, Proxy-Connection: hop-by-hop without further meaning
	KindForwardedFor
	KindForwardedProto
	KindForwardedHost
	KindForwardedPrefix
	KindForwardedPort
	KindForwarded // Forwarded, X-Real-IP
	KindVia
	KindAuthorization
	KindCookie
	KindSetCookie
	KindContentType
	KindContentEncoding
	KindTraceParent
	KindTraceID
	KindRequestID
	KindLocation
	KindLoop // CDN-Loop
	KindDate
)

// KindOf finds the kind of a name, in any case.
func KindOf(name []byte) Kind {
	if len(name) < 2 || len(name) > 18 {
		return KindOther
	}
	for _, k := range kindsByLength[len(name)] {
		if name[0]|0x20 == k.name[0] && EqualFoldString(name, k.name) {
			return k.kind
		}
	}
	return KindOther
}

type knownName struct {
	name string
	kind Kind
}

var kindsByLength = func() (t [19][]knownName) {
	for _, k := range []knownName{
		{"host", KindHost}, {"connection", KindConnection}, {"content-length", KindContentLength},
		{"transfer-encoding", KindTransferEncoding}, {"expect", KindExpect}, {"upgrade", KindUpgrade},
		{"trailer", KindTrailer}, {"te", KindTE}, {"keep-alive", KindHop}, {"proxy-connection", KindHop},
		{"x-forwarded-for", KindForwardedFor}, {"x-forwarded-proto", KindForwardedProto},
		{"x-forwarded-host", KindForwardedHost}, {"x-forwarded-prefix", KindForwardedPrefix},
		{"x-forwarded-port", KindForwardedPort}, {"forwarded", KindForwarded}, {"x-real-ip", KindForwarded},
		{"via", KindVia}, {"authorization", KindAuthorization}, {"cookie", KindCookie}, {"set-cookie", KindSetCookie},
		{"content-type", KindContentType}, {"content-encoding", KindContentEncoding}, {"traceparent", KindTraceParent},
		{"x-trace-id", KindTraceID}, {"x-request-id", KindRequestID}, {"location", KindLocation}, {"cdn-loop", KindLoop}, {"date", KindDate},
	} {
		t[len(k.name)] = append(t[len(k.name)], k)
	}
	return t
}()

// Hop tells whether a line of this kind belongs to one connection only and is never forwarded as it came (RFC 9110 section
// 7.6.1). Content-Length and Host are not among them, though the gateway writes both anew.
func (k Kind) Hop() bool {
	switch k {
	case KindConnection, KindTransferEncoding, KindUpgrade, KindTrailer, KindTE, KindHop:
		return true
	}
	return false
}
