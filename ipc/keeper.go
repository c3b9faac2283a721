package ipc

// SecretKeys gives the keeper the keys of its generation as four open files, in
// this order: a private key, its certificates and the certificate authorities
// of clients, all PEM, and the key of HS256 tokens as raw bytes. An empty file
// means that there are none.
type SecretKeys struct {
	TLS     bool // there is a private key with certificates
	TLS12   bool // the key may also sign TLS 1.2 handshakes
	Token   bool // there is a token key
	Current bool // no newer token key exists: a token that does not match this key is forged
}

func (s *SecretKeys) Walk(w *Walker) { w.Fields(&s.TLS, &s.TLS12, &s.Token, &s.Current) }

// Kept answers a message with the keys of a generation: the keeper answers
// SecretKeys, and a worker answers Keys. If OK is set, the keys are in use.
// Otherwise Reason says why a key can't be used. In the keeper's answer, that
// key is the token key if Token is set, and the private key otherwise. In a
// worker's answer, it is the key set.
type Kept struct {
	OK     bool
	Token  bool
	Reason string // "" when OK
}

func (k *Kept) Walk(w *Walker) {
	w.Fields(&k.OK, &k.Token)
	w.Text(MaxReason, &k.Reason)
}
