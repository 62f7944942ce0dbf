package core

// IsGRPC tells whether the request is a call of gRPC: over HTTP/2, with a content type of application/grpc, alone or with a "+" and the
// name of its messages' form. gRPC-Web is another protocol.
func (r *Request) IsGRPC() bool {
	const kind = "application/grpc"
	if r.Proto != HTTP2 || r.Extended {
		return false
	}
	v := r.Header.GetKind(KindContentType)
	if len(v) < len(kind) || !EqualFoldString(v[:len(kind)], kind) {
		return false
	}
	return len(v) == len(kind) || v[len(kind)] == '+' || v[len(kind)] == ';' || v[len(kind)] == ' '
}
