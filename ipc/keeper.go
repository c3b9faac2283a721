package ipc

// Bounds of what passes between a worker and the keeper, in bytes.
const (
	maxHandshake = 1024 // TLS 1.3 signs 130 to 162 bytes; TLS 1.2 the two randoms and the key exchange
	maxSignature = 1024 // RSA of 8192 bits
	maxTickets   = 4
)

// KeyFD brings a private key, its certificates and the authorities of clients, three open files
// in this order, all PEM; an empty third one stands for no authorities. Number tells them from
// those before.
type KeyFD struct {
	Number uint32
	TLS12  bool // handshakes of TLS 1.2 may be signed with it, too
}

// Kind is KindKeyFD.
func (*KeyFD) Kind() Kind { return KindKeyFD }

func (k *KeyFD) walk(w *walker) {
	w.u32(&k.Number)
	w.flag(&k.TLS12)
}

// Kept is the keeper's answer to a KeyFD: the key is in use from now on, or Reason says why
// the one before it stays.
type Kept struct {
	Number uint32
	OK     bool
	Reason string // "" when OK
}

// Kind is KindKept.
func (*Kept) Kind() Kind { return KindKept }

func (k *Kept) walk(w *walker) {
	w.u32(&k.Number)
	w.flag(&k.OK)
	w.text(&k.Reason, maxReason)
}

// Certificate brings a worker the certificates of the kept key Number, an open PEM file. Workers
// share its offset, so that it is read by position.
type Certificate struct {
	Number uint32
	TLS12  bool // clients that know nothing newer are let in
}

// Kind is KindCertificate.
func (*Certificate) Kind() Kind { return KindCertificate }

func (c *Certificate) walk(w *walker) {
	w.u32(&c.Number)
	w.flag(&c.TLS12)
}

// ClientCA brings a worker the authorities whose clients may connect over TLS, an open PEM file
// that is read by position. Whoever gets one refuses every client without such a certificate.
type ClientCA struct{}

// Kind is KindClientCA.
func (*ClientCA) Kind() Kind { return KindClientCA }

func (*ClientCA) walk(*walker) {}

// Tickets are the keys that TLS session tickets are made with, the newest first: it makes new
// tickets, all read old ones. They are secret, of one run of the parent, and shared by its
// workers, so that a client may resume with another worker.
type Tickets struct {
	Keys [][32]byte
}

// Kind is KindTickets.
func (*Tickets) Kind() Kind { return KindTickets }

func (t *Tickets) walk(w *walker) {
	list(w, &t.Keys, maxTickets, 32, func(k *[32]byte) { w.bytes(k[:]) })
}

// Sign asks the keeper for a signature of a handshake. Message is what is signed, not its hash:
// of a hash the keeper could not tell what it stands for.
type Sign struct {
	ID      uint64 // chosen by the worker; the answer has it too
	Key     uint32 // the Number of the certificates that the client was shown
	Scheme  uint16 // as tls.SignatureScheme
	Message []byte
}

// Kind is KindSign.
func (*Sign) Kind() Kind { return KindSign }

func (s *Sign) walk(w *walker) {
	w.u64(&s.ID)
	w.u32(&s.Key)
	w.u16(&s.Scheme)
	w.blob(&s.Message, maxHandshake)
}

// Signed is the answer to the Sign of the same ID. An empty signature is a refusal; why stands
// in the keeper's log.
type Signed struct {
	ID        uint64
	Signature []byte
}

// Kind is KindSigned.
func (*Signed) Kind() Kind { return KindSigned }

func (s *Signed) walk(w *walker) {
	w.u64(&s.ID)
	w.blob(&s.Signature, maxSignature)
}
