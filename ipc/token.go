package ipc

// Bounds of a token's parts, in bytes: what is signed of the longest token that is looked at (auth.MaxToken),
// and an HS256 signature.
const (
	maxSigned = 8 << 10
	macSize   = 32
)

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
