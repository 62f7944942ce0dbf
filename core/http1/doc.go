// Package http1 is the wire of HTTP/1.1 (RFC 9112) on both legs: it turns bytes into a [core.Request] or [core.Response] and back.
//
// [Conn] owns one connection: a pooled read buffer, a pooled write buffer and time limits that are moved lazily. [ParseRequest] and
// [ParseResponse] read a head in place, strictly: one reading or an error, never a guess. [BodyReader] takes a body off the
// connection by length, by chunks with trailers, or until close. The writers put heads, chunks and trailers on the wire.
//
// The package decides nothing: it knows no routes, no limits but sizes and times, and forwards nothing by itself.
package http1
