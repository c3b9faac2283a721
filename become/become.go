// Package become determines the process at the other end of a UNIX socket, and knows
// the ids that stand for no account. Package nss looks names up, package stage
// starts programs under another identity.
//
// It reads nothing that comes over the network: the privileged parent links it.
package become

// Kernel's stand-ins for ids that have no number here.
const (
	NoID     uint32 = 1<<32 - 1 // (uid_t)-1: "unchanged", never an account
	Overflow uint32 = 65534     // an id that this user namespace can't show; also nobody
)
