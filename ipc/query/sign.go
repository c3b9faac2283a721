package query

import "schedrestd/ipc"

// Bounds of a signature and of the signed message, in bytes.
const (
	maxHandshake = 1024 // TLS 1.3 signs 130 to 162 bytes; TLS 1.2 signs both random values and the server's key exchange
	maxSignature = 1024 // RSA of 8192 bits
)

// Sign asks the keeper to sign a message of a TLS handshake. Message is the
// whole message and not its hash, because a hash would not show the keeper what
// it signs.
type Sign struct {
	ID      uint64 // chosen by the worker and repeated in the answer
	Scheme  uint16 // as tls.SignatureScheme
	Message []byte
}

func (s *Sign) Walk(w *ipc.Walker) {
	w.Fields(&s.ID, &s.Scheme)
	w.Blob(&s.Message, maxHandshake)
}

// Signed answers the Sign with the same ID. An empty signature is a refusal;
// the keeper logs the reason.
type Signed struct {
	ID        uint64
	Signature []byte
}

func (s *Signed) Walk(w *ipc.Walker) {
	w.Fields(&s.ID)
	w.Blob(&s.Signature, maxSignature)
}
