// Package security makes the checks that a process must pass before it serves:
// whether the identity may serve, which capabilities the process keeps, and
// whether a worker is really confined.
//
// It looks up no name and starts no process, but it reads /proc. The parent
// sends a new process the attributes that it must have. The process confines
// itself, and serves only if the kernel reports these attributes (package
// self).
//
// Package sandbox takes the last step. From then on the process can open no
// files, and can make only listed system calls. Only the confined processes
// link package sandbox. Entering namespaces and root directories is the
// parent's task (package privsep).
package security
