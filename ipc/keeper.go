package ipc

// maxTickets bounds the keys of session tickets.
const maxTickets = 4

// KeyFD brings a private key, its certificates and the authorities of clients, three open files
// in this order, all PEM; an empty third one stands for no authorities. Number tells them from
// those before.
type KeyFD struct {
	Number uint32
	TLS12  bool // handshakes of TLS 1.2 may be signed with it, too
}

func (k *KeyFD) Walk(w *Walker) { w.Fields(&k.Number, &k.TLS12) }

// Kept is the keeper's answer to a KeyFD: the key is in use from now on, or Reason says why
// the one before it stays.
type Kept struct {
	Number uint32
	OK     bool
	Reason string // "" when OK
}

func (k *Kept) Walk(w *Walker) {
	w.Fields(&k.Number, &k.OK)
	w.Text(maxReason, &k.Reason)
}

// Certificate brings a worker the certificates of the kept key Number, an open PEM file. Workers
// share its offset, so that it is read by position.
type Certificate struct {
	Number uint32
	TLS12  bool // clients that know nothing newer are let in
}

func (c *Certificate) Walk(w *Walker) { w.Fields(&c.Number, &c.TLS12) }

// ClientCA brings a worker the authorities whose clients may connect over TLS, an open PEM file
// that is read by position. Whoever gets one refuses every client without such a certificate.
type ClientCA struct{}

func (*ClientCA) Walk(*Walker) {}

// Tickets are the keys that TLS session tickets are made with, the newest first: it makes new
// tickets, all read old ones. They are secret, of one run of the parent, and shared by its
// workers, so that a client may resume with another worker.
type Tickets struct {
	Keys [][32]byte
}

func (t *Tickets) Walk(w *Walker) {
	List(w, &t.Keys, maxTickets, 32, func(k *[32]byte) { w.Bytes(k[:]) })
}
