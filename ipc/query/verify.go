package query

import "schedrestd/ipc"

// Sizes of the parts of a token, in bytes. maxSigned limits the signed part. It
// is the maximum length of a whole token (auth.maxToken), so it never excludes
// an accepted token. macSize is the size of an HS256 signature, and maxRSA that of the
// longest one of RS256.
const (
	maxSigned = 24 << 10
	macSize   = 32
	maxRSA    = 1024
)

// Verify asks the keeper whether the HS256 signature of a token is valid. The
// keeper never reveals a valid signature.
type Verify struct {
	ID     uint64 // chosen by the worker and repeated in the answer
	Signed []byte // header and payload of the token, as they were sent
	MAC    [macSize]byte
}

func (v *Verify) Walk(w *ipc.Walker) {
	w.Fields(&v.ID)
	w.Blob(&v.Signed, maxSigned)
	w.Bytes(v.MAC[:])
}

// Verdict is the keeper's decision about a signature.
type Verdict uint8

const (
	NoVerdict Verdict = iota // the keeper has no key
	Genuine
	Forged
	Outdated   // not genuine, but the key's file can no longer be used, so there may be a newer key
	Revoked    // a genuine gateway token that must no longer be accepted
	NotForUser // a genuine token that does not act for the user that the request names, or names no user
	NotInScope // a genuine gateway token that does not permit this
)

// Verified answers the Verify with the same ID.
type Verified struct {
	ID      uint64
	Verdict Verdict
}

func (v *Verified) Walk(w *ipc.Walker) {
	w.Fields(&v.ID)
	ipc.Enum(w, &v.Verdict, "verdict", NoVerdict, Outdated)
}
