package ipc

// Bounds of what passes between a worker and the keeper, in bytes.
const (
	maxHandshake = 1024 // TLS 1.3 signs 130 to 162 bytes; TLS 1.2 the two randoms and the key exchange
	maxSignature = 1024 // RSA of 8192 bits
	maxTickets   = 4
)

// SecretKeys brings the keeper the keys of its generation as four open files, in this order: a private key, its
// certificates and the authorities of clients, all PEM, and the key of HS256 tokens, whose bytes
// are the key. An empty file stands for none.
type SecretKeys struct {
	TLS      bool // there is a private key with certificates
	TLS12    bool // handshakes of TLS 1.2 may be signed with it, too
	Token    bool // there is a key of tokens
	Followed bool // … and no newer one: a signature that does not match it is forged
}

// Kind is KindSecretKeys.
func (*SecretKeys) Kind() Kind { return KindSecretKeys }

func (s *SecretKeys) walk(w *walker) {
	w.flag(&s.TLS)
	w.flag(&s.TLS12)
	w.flag(&s.Token)
	w.flag(&s.Followed)
}

// Kept is the keeper's answer to SecretKeys: the keys are in use, or Reason says why the key of
// tokens, if Token is set, or else the private key, can't be used.
type Kept struct {
	OK     bool
	Token  bool
	Reason string // "" when OK
}

// Kind is KindKept.
func (*Kept) Kind() Kind { return KindKept }

func (k *Kept) walk(w *walker) {
	w.flag(&k.OK)
	w.flag(&k.Token)
	w.text(&k.Reason, maxReason)
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

// Kind is KindKeys.
func (*Keys) Kind() Kind { return KindKeys }

func (k *Keys) walk(w *walker) {
	w.flag(&k.TLS)
	w.flag(&k.TLS12)
	w.flag(&k.Authorities)
	w.flag(&k.Followed)
	list(w, &k.Tickets, maxTickets, 32, func(k *[32]byte) { w.bytes(k[:]) })
}

// Sign asks the keeper for a signature of a handshake. Message is what is signed, not its hash:
// of a hash the keeper could not tell what it stands for.
type Sign struct {
	ID      uint64 // chosen by the worker; the answer has it too
	Scheme  uint16 // as tls.SignatureScheme
	Message []byte
}

// Kind is KindSign.
func (*Sign) Kind() Kind { return KindSign }

func (s *Sign) walk(w *walker) {
	w.u64(&s.ID)
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
