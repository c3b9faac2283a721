package query

import "schedrestd/ipc"

// Bounds of what is said about gateway tokens, in bytes. A whole payload has at
// most a few hundred.
const (
	maxGatewayToken = 2 << 10
	maxBearer       = 512
	maxDigest       = 16
)

// Exchange asks the keeper for a token that the daemons accept, in exchange for a
// gateway token (package gatewaytoken).
type Exchange struct {
	ID     uint64 // chosen by the worker and repeated in the answer
	Signed []byte // header and payload of the gateway token, as they were sent
	MAC    [macSize]byte
}

func (e *Exchange) Walk(w *ipc.Walker) {
	w.Fields(&e.ID)
	w.Blob(&e.Signed, maxGatewayToken)
	w.Bytes(e.MAC[:])
}

// Exchanged answers the Exchange with the same ID.
type Exchanged struct {
	ID      uint64
	Verdict Verdict
	Bearer  []byte // the daemons' token, which is valid for half a minute; empty unless the verdict is Genuine
}

func (e *Exchanged) Walk(w *ipc.Walker) {
	w.Fields(&e.ID)
	ipc.Enum(w, &e.Verdict, "verdict", NoVerdict, Revoked)
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
