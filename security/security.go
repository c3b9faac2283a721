// Package security makes the checks before a process serves: whether this
// identity may serve at all, which capabilities stay, and whether a worker is
// really confined.
//
// It looks up no name and starts no process; it reads /proc. Expect says which
// attributes a process that the parent starts must have. The process confines
// itself, and serves only if it has them (package self).
//
// Package seal takes the last step, which only the confined process itself can
// link: no files, and a list of allowed system calls. The parent enters
// namespaces and roots (package privsep).
package security
