package ipc

// Bounds of a token's parts, in bytes: what is signed of the longest token that is looked at (auth.MaxToken),
// and an HS256 signature.
const (
	maxSigned = 8 << 10
	macSize   = 32
)

// TokenKeyFD brings the keeper the key of HS256 tokens, an open file whose bytes are the key. It is answered
// with Kept of that number, which is one of the same row of numbers as KeyFD's.
type TokenKeyFD struct {
	Number   uint32
	Followed bool // a new key in the file's place will be noticed; else a signature that is not this key's may be the new one's
}

// Kind is KindTokenKeyFD.
func (*TokenKeyFD) Kind() Kind { return KindTokenKeyFD }

func (k *TokenKeyFD) walk(w *walker) {
	w.u32(&k.Number)
	w.flag(&k.Followed)
}

// Verify asks the keeper whether a token's HS256 signature is good. It never says what the
// right one would be.
type Verify struct {
	ID     uint64 // chosen by the worker; the answer has it too
	Signed []byte // header and payload of the token, as they were sent
	MAC    [macSize]byte
}

// Kind is KindVerify.
func (*Verify) Kind() Kind { return KindVerify }

func (v *Verify) walk(w *walker) {
	w.u64(&v.ID)
	w.blob(&v.Signed, maxSigned)
	w.bytes(v.MAC[:])
}

// Verdict is what the keeper says of a token's signature.
type Verdict uint8

// The verdicts.
const (
	NoVerdict Verdict = iota // it has no key, or perhaps an old one
	Genuine
	Forged
)

// Verified is the answer to the Verify of the same ID.
type Verified struct {
	ID      uint64
	Verdict Verdict
}

// Kind is KindVerified.
func (*Verified) Kind() Kind { return KindVerified }

func (v *Verified) walk(w *walker) {
	w.u64(&v.ID)
	enum(w, &v.Verdict, "verdict", NoVerdict, Forged)
}

// JWKSFD brings a worker the public keys of RS256 tokens: a sealed copy of a JSON Web Key Set, read by
// position. It replaces the one before; an empty one stands for none.
type JWKSFD struct {
	Followed bool // as TokenKeyFD's
}

// Kind is KindJWKSFD.
func (*JWKSFD) Kind() Kind { return KindJWKSFD }

func (j *JWKSFD) walk(w *walker) { w.flag(&j.Followed) }

// KeyChanged tells a worker that what it remembers of HS256 tokens was said of another key.
type KeyChanged struct{}

// Kind is KindKeyChanged.
func (*KeyChanged) Kind() Kind { return KindKeyChanged }

func (*KeyChanged) walk(*walker) {}
