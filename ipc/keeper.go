package ipc

// maxTickets is the largest number of session ticket keys.
const maxTickets = 4

// SecretKeys gives the keeper the keys of its generation as four open files, in this
// order: a private key, its certificates and the certificate authorities of clients,
// all PEM, and the key of HS256 tokens as raw bytes. An empty file stands for none.
type SecretKeys struct {
	TLS      bool // there is a private key with certificates
	TLS12    bool // it may also sign TLS 1.2 handshakes
	Token    bool // there is a token key
	Followed bool // … and no newer one exists: a token that does not match it is forged
}

func (s *SecretKeys) Walk(w *Walker) { w.Fields(&s.TLS, &s.TLS12, &s.Token, &s.Followed) }

// Kept is the keeper's answer to SecretKeys, and a worker's to Keys: the keys are in
// use, or Reason says why a key can't be used. The keeper's is the token key if Token is
// set, otherwise the private key; a worker's is the key set.
type Kept struct {
	OK     bool
	Token  bool
	Reason string // "" when OK
}

func (k *Kept) Walk(w *Walker) {
	w.Fields(&k.OK, &k.Token)
	w.Text(MaxReason, &k.Reason)
}

// Keys gives a worker the public keys of its generation as three open files, in this
// order: the certificates of the listeners and the certificate authorities of
// clients, both PEM, and the key set of RS256 tokens, JSON. An empty file stands for
// none. Workers share the file offsets and therefore read by position.
type Keys struct {
	TLS         bool // there are certificates
	TLS12       bool // clients may use TLS 1.2
	Authorities bool // clients need a certificate, even if the file of authorities is empty
	Followed    bool // no newer key set exists: a token that does not match it is forged

	// Tickets are the keys of TLS session tickets, the newest first. The newest one
	// encrypts tickets, and all of them decrypt. They are secret, belong to one run of
	// the parent, and are shared by its workers, so that a client can resume a session
	// with another worker.
	Tickets [][32]byte
}

func (k *Keys) Walk(w *Walker) {
	w.Fields(&k.TLS, &k.TLS12, &k.Authorities, &k.Followed)
	List(w, &k.Tickets, maxTickets, 32, func(k *[32]byte) { w.Bytes(k[:]) })
}
