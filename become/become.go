// Package become reads the credentials of the process at the other end of a
// UNIX socket, and defines ids that belong to no user. Package nss looks up
// names. Package stage starts programs under another identity.
//
// The privileged parent links this package, so the package reads nothing that
// comes over the network.
package become

// Ids that stand for no user or for an unknown user.
const (
	NoID     uint32 = 1<<32 - 1 // (uid_t)-1: "unchanged", never an account
	Overflow uint32 = 65534     // stands for an id that is unknown in this user namespace; also the user `nobody`
)
