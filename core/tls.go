package core

// TLSInfo is what a client's TLS connection told. It belongs to the connection and is immutable.
type TLSInfo struct {
	Version    string // "TLS 1.3"
	Cipher     string // the suite's standard name
	ServerName string // that the client asked for (SNI), "" when it did not say
	Resumed    bool   // an earlier session went on

	// The certificate of the client; empty when it has shown none. One that was shown has been verified.
	ClientSubject     string   // distinguished name (RFC 2253)
	ClientName        string   // common name of its subject
	ClientOrgs        []string // organizations of its subject
	ClientURIs        []string // those of ClientSANs that are URIs, such as SPIFFE ids
	ClientSANs        []string // names, addresses, e-mail addresses and URIs that it is for
	ClientFingerprint string   // SHA-256 of it in hexadecimal digits, "" without a certificate
}
