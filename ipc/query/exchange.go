package query

import "schedrestd/ipc"

// Bounds of what is said about gateway tokens, in bytes. A whole payload has at
// most a few hundred.
const (
	maxGatewayToken = 2 << 10
	maxBearer       = 512
	maxDigest       = 16
	maxUser         = 64 // of the name of a user or a group in a gateway token
)

// Exchange asks the keeper for a token that the daemons accept, in exchange for a
// gateway token (package gatewaytoken).
type Exchange struct {
	ID     uint64 // chosen by the worker and repeated in the answer
	Signed []byte // header and payload of the gateway token, as they were sent
	MAC    [macSize]byte
	ActAs  string // the user to act as; "": the token's own user
	Check  bool   // whether the token is still accepted: the answer has no token, and nobody is asked about the user
}

func (e *Exchange) Walk(w *ipc.Walker) {
	w.Fields(&e.ID)
	w.Blob(&e.Signed, maxGatewayToken)
	w.Bytes(e.MAC[:])
	w.Text(maxUser, &e.ActAs)
	w.Fields(&e.Check)
}

// Exchanged answers the Exchange with the same ID.
type Exchanged struct {
	ID      uint64
	Verdict Verdict
	Bearer  []byte // the daemons' token, which is valid for half a minute; empty unless the verdict is Genuine
}

func (e *Exchanged) Walk(w *ipc.Walker) {
	w.Fields(&e.ID)
	ipc.Enum(w, &e.Verdict, "verdict", NoVerdict, NotForUser)
	w.Blob(&e.Bearer, maxBearer)
}

// AskDigests asks the keeper with what it decides about gateway tokens. A worker
// that has the answer repeats the question to learn of revocations.
type AskDigests struct{ ID uint64 }

func (a *AskDigests) Walk(w *ipc.Walker) { w.Fields(&a.ID) }

// Digests answers the AskDigests with the same ID.
type Digests struct {
	ID       uint64
	Key      string // digest of the key of gateway tokens, in hexadecimal digits; "none" if there is no key
	Register string // digest of the register of tokens; "none" if there is none that can be used
}

func (d *Digests) Walk(w *ipc.Walker) {
	w.Fields(&d.ID)
	w.Text(maxDigest, &d.Key)
	w.Text(maxDigest, &d.Register)
}
