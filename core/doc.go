// Package core holds the words that every part of the gateway shares. It answers one question: what travels?
//
// One thing does, the [Exchange]: a request and its response on their way from a client to an upstream and back. Everything
// else stands still and is visited. A [Stage] looks at the exchange and may answer it with a [Reply]; a [Route] says where
// it belongs; an [Endpoint] is where it goes. Codecs fill its [Header] and [Body] at the border and end there: nothing above
// them knows whether HTTP/1.1 or HTTP/2 carried the bytes.
//
// core imports no other part of the gateway, does no I/O of its own and knows no Lua.
package core
