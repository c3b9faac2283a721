package query

import "schedrestd/ipc"

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

func (v *Verify) Walk(w *ipc.Walker) {
	w.Fields(&v.ID)
	w.Blob(&v.Signed, maxSigned)
	w.Bytes(v.MAC[:])
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

func (v *Verified) Walk(w *ipc.Walker) {
	w.Fields(&v.ID)
	ipc.Enum(w, &v.Verdict, "verdict", NoVerdict, Forged)
}
