package ipc

// SecretKeys passes secret keys and certificates to a keeper, as four open
// files in this order:
//
//   - a private key, in PEM
//   - the certificates of that key, in PEM
//   - the certificate authorities of clients, in PEM
//   - the key for HS256 tokens, as raw bytes
//
// An empty file means that there is no such key or certificate.
type SecretKeys struct {
	TLS     bool // there is a private key with certificates
	TLS12   bool // the key may also sign TLS 1.2 handshakes
	Token   bool // there is a token key
	Current bool // no newer token key exists: a token that does not match this key is forged
}

func (s *SecretKeys) Walk(w *Walker) { w.Fields(&s.TLS, &s.TLS12, &s.Token, &s.Current) }

// KeysResult reports whether a process uses the keys that it has received. The
// keeper sends KeysResult as the answer to SecretKeys, and a worker as the
// answer to Keys.
//
// If OK is not set, Reason says why a key can't be used. If a worker sends
// KeysResult, this key is the key set. If the keeper sends KeysResult, this key
// is the token key if Token is set, and otherwise the private key. With OK, Token
// says that the keeper has a token key.
type KeysResult struct {
	OK     bool
	Token  bool
	Reason string // "" when OK
}

func (k *KeysResult) Walk(w *Walker) {
	w.Fields(&k.OK, &k.Token)
	w.Text(MaxReason, &k.Reason)
}
