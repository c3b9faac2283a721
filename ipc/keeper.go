package ipc

// maxTickets bounds the keys of session tickets.
const maxTickets = 4

// SecretKeys brings the keeper the keys of its generation as four open files, in this order: a private key, its
// certificates and the authorities of clients, all PEM, and the key of HS256 tokens, whose bytes
// are the key. An empty file stands for none.
type SecretKeys struct {
	TLS      bool // there is a private key with certificates
	TLS12    bool // handshakes of TLS 1.2 may be signed with it, too
	Token    bool // there is a key of tokens
	Followed bool // … and no newer one: a signature that does not match it is forged
}

func (s *SecretKeys) Walk(w *Walker) { w.Fields(&s.TLS, &s.TLS12, &s.Token, &s.Followed) }

// Kept is the keeper's answer to SecretKeys: the keys are in use, or Reason says why the key of
// tokens, if Token is set, or else the private key, can't be used.
type Kept struct {
	OK     bool
	Token  bool
	Reason string // "" when OK
}

func (k *Kept) Walk(w *Walker) {
	w.Fields(&k.OK, &k.Token)
	w.Text(maxReason, &k.Reason)
}

// Keys brings a worker the public keys of its generation as three open files, in this order: the
// certificates of the listeners and the authorities of clients, both PEM, and the key set of RS256 tokens,
// JSON. An empty file stands for none. Workers share their offsets, so that they are read by position.
type Keys struct {
	TLS         bool // there are certificates
	TLS12       bool // clients that know nothing newer are let in
	Authorities bool // a client needs a certificate of theirs, whatever is in the file
	Followed    bool // no newer key set exists: a signature that does not match it is forged

	// Tickets are the keys of TLS session tickets, the newest first: it makes new
	// tickets, all read old ones. They are secret, of one run of the parent, and shared by its
	// workers, so that a client may resume with another worker.
	Tickets [][32]byte
}

func (k *Keys) Walk(w *Walker) {
	w.Fields(&k.TLS, &k.TLS12, &k.Authorities, &k.Followed)
	List(w, &k.Tickets, maxTickets, 32, func(k *[32]byte) { w.Bytes(k[:]) })
}
