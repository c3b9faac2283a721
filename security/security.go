// Package security has the judgements that come before a process serves: may this
// identity serve at all, which capabilities stay, and
// is the worker really in the cage it was put in.
//
// It looks up no name and starts no process; what it knows of the machine it reads off /proc. Expect says how a process
// that the parent starts has to find itself; the process confines itself and serves only if it finds that it is so (package self).
//
// The last step of the cage, which only who lives in it can link, is package seal: no files, and a list of the
// system calls that are left. Namespaces and the root are the parent's to enter (package privsep).
package security
