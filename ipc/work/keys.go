package work

import "schedrestd/ipc"

// maxTickets is the largest number of session ticket keys.
const maxTickets = 4

// Keys gives a worker the public keys of its generation, with their files.
type Keys struct {
	ipc.PublicKeys

	// Tickets are the keys of TLS session tickets, the newest first. The newest
	// one encrypts tickets, and all of them decrypt. They are secret. The
	// dispatcher makes one for each generation, and adds those of the two
	// previous generations. All workers of a generation share them, so that a
	// client can resume a session with another worker.
	Tickets [][32]byte
}

func (k *Keys) Walk(w *ipc.Walker) {
	k.PublicKeys.Walk(w)
	ipc.List(w, &k.Tickets, maxTickets, 32, func(k *[32]byte) { w.Bytes(k[:]) })
}
