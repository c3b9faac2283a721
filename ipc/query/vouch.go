package query

import "schedrestd/ipc"

// VouchFor asks the keeper for a number that stands for the user of a token when a
// process is started that reads this user's files.
type VouchFor struct {
	ID      uint64 // chosen by the worker and repeated in the answer
	Signed  []byte // header and payload of the token, as they were sent
	MAC     [macSize]byte
	ActAs   string // the user to act as; "": the token's own user
	Gateway bool   // it is a gateway token
	RSA     []byte // signature of an RS256 token; empty: MAC is the signature
}

func (v *VouchFor) Walk(w *ipc.Walker) {
	w.Fields(&v.ID)
	w.Blob(&v.Signed, maxSigned)
	w.Bytes(v.MAC[:])
	w.Text(maxUser, &v.ActAs)
	w.Fields(&v.Gateway)
	w.Blob(&v.RSA, maxRSA)
}

// VouchedFor answers the VouchFor with the same ID.
type VouchedFor struct {
	ID      uint64
	Verdict Verdict
	Client  uint64 // the number; 0 if the verdict is not Genuine, or if no process may run as this user
	UID     uint32 // of the user
}

func (v *VouchedFor) Walk(w *ipc.Walker) {
	w.Fields(&v.ID)
	ipc.Enum(w, &v.Verdict, "verdict", NoVerdict, NotForUser)
	w.Fields(&v.Client, &v.UID)
}
