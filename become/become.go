// Package become determines the process at the other end of a UNIX socket, and
// defines ids that belong to no account. Package nss looks up names. Package
// stage starts programs under another identity.
//
// The privileged parent links this package, so it reads nothing that comes over
// the network.
package become

// Ids that the kernel uses for unknown users.
const (
	NoID     uint32 = 1<<32 - 1 // (uid_t)-1: "unchanged", never an account
	Overflow uint32 = 65534     // an id that is unknown in this user namespace; also the user `nobody`
)
