package core

import "unsafe"

// Count notes n bytes that came from the sender of the body by another way than Read, such as over a connection that has switched
// protocols.
func (b *Body) Count(n int64) { b.taken += n }

// Rebase moves everything of the exchange that lies in from to the same place in to, which is a copy of it: what is parsed lies in the
// buffers of connections, and an exchange that lasts for hours should not keep those.
func (x *Exchange) Rebase(from, to []byte) {
	r, w := &x.Request, &x.Response
	for _, p := range [...]*[]byte{&r.Host, &r.RawPath, &r.Path, &r.RawQuery, &r.TargetPath, &r.TargetQuery, &w.Reason, &x.RequestID, &x.TraceID} {
		rebase(p, from, to)
	}
	for i := range r.Params {
		rebase(&r.Params[i].Value, from, to)
	}
	for _, h := range [...]*Header{&r.Header, &w.Header, &r.Body.Trailer, &w.Body.Trailer} {
		for i := range h.fields {
			rebase(&h.fields[i].Name, from, to)
			rebase(&h.fields[i].Value, from, to)
		}
	}
}

func rebase(p *[]byte, from, to []byte) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(*p))) - uintptr(unsafe.Pointer(unsafe.SliceData(from))) // wraps around when it lies in front
	if *p != nil && at < uintptr(len(from)) && at+uintptr(len(*p)) <= uintptr(len(to)) {
		*p = to[at : at+uintptr(len(*p)) : at+uintptr(len(*p))]
	}
}
