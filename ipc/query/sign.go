package query

import "schedrestd/ipc"

// Bounds of a signature and of what it is for, in bytes.
const (
	maxHandshake = 1024 // TLS 1.3 signs 130 to 162 bytes; TLS 1.2 the two randoms and the key exchange
	maxSignature = 1024 // RSA of 8192 bits
)

// Sign asks the keeper for a signature of a handshake. Message is what is signed, not its hash:
// of a hash the keeper could not tell what it stands for.
type Sign struct {
	ID      uint64 // chosen by the worker; the answer has it too
	Scheme  uint16 // as tls.SignatureScheme
	Message []byte
}

func (s *Sign) Walk(w *ipc.Walker) {
	w.Fields(&s.ID, &s.Scheme)
	w.Blob(&s.Message, maxHandshake)
}

// Signed is the answer to the Sign of the same ID. An empty signature is a refusal; why stands
// in the keeper's log.
type Signed struct {
	ID        uint64
	Signature []byte
}

func (s *Signed) Walk(w *ipc.Walker) {
	w.Fields(&s.ID)
	w.Blob(&s.Signature, maxSignature)
}
