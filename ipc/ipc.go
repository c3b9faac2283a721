// Package ipc is how the gateway's processes talk: the framing, the book that says
// who may say what and when, and the passing of descriptors.
//
// A channel is a SOCK_SEQPACKET pair, so the kernel keeps the borders between
// messages and a reader never has to find them. A frame is one byte of kind and
// then the message's fields, little-endian, in the order of its walk; the same walk
// writes and reads. A reader checks the book first (kind, direction, phase, size,
// number of descriptors) and refuses what is left over afterwards.
//
// The package refuses to be lenient. The other end may be a captured worker, so
// an unknown kind, one out of turn, a wrong size, a missing or a surplus
// descriptor is a *Violation: the caller ends the peer, it never answers it.
//
// The way in is Pair and Open, then Channel.Send and Channel.Receive. The book is
// in book.go; docs/PRIVSEP.md shows it, generated.
package ipc

// MaxMessage is the longest frame in bytes, kind included. It bounds what one
// message of a hostile peer can make the reader hold.
const MaxMessage = 16 << 10

// AnchorMode is the last argument of a worker's program that serves nobody: it waits for the end of its
// descriptor 3, as the first process of a PID namespace. The argument before it is the Seal that it closes the cage with; when it has, it
// says AnchorHolds on that descriptor, and anything else tells why it can't.
const (
	AnchorMode  = "anchor"
	AnchorHolds = "holds"
)

// bookVersion stands for the book and all walks: the checksum of testdata/book.txt, which has them in words. Tests demand
// both. It begins the first message that a process hears, and is judged before anything that another build may have
// otherwise, so that a worker of one refuses in words. Versions are the same or not; none is the newer one.
const bookVersion = 0xad200b77

// WorkerFD is the descriptor on which a worker finds its channel.
const WorkerFD = 3

// ConfigFD is the descriptor on which schedrestd-config finds its channel: the same as a worker's.
const ConfigFD = WorkerFD
