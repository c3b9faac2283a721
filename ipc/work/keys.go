package work

import "schedrestd/ipc"

// MaxPEM is the maximum size of a file with a private key or with certificates,
// in bytes.
const MaxPEM = 1 << 20

// maxTickets is the largest number of session ticket keys.
const maxTickets = 4

// Keys gives a worker the public keys of its generation, with their files.
type Keys struct {
	ipc.PublicKeys

	// Tickets are the secret keys of TLS session tickets, newest first. Workers
	// encrypt tickets with the first key, and decrypt tickets with any of the
	// keys. The dispatcher makes one key for each generation of workers, and
	// adds the keys of the two previous generations. All workers of a
	// generation have the same keys, so that a client can resume a session with
	// another worker.
	Tickets [][32]byte
}

func (k *Keys) Walk(w *ipc.Walker) {
	k.PublicKeys.Walk(w)
	ipc.List(w, &k.Tickets, maxTickets, 32, func(k *[32]byte) { w.Bytes(k[:]) })
}
