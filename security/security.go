// Package security makes the checks that a process must pass before it serves:
// that its identity may serve, that it keeps only the intended capabilities,
// and that a worker is really confined.
//
// It looks up no names and starts no processes, but it reads /proc. A new
// process receives from the parent the attributes that it must have. The
// process confines itself, and serves only if the kernel reports these
// attributes (package self).
//
// Closing the sandbox (package sandbox) is the last step. From then on the
// process can open no files, and can make only listed system calls. Only the
// confined processes link package sandbox. The parent enters namespaces and
// root directories (package privsep). If the parent lacks CAP_SYS_ADMIN, each
// process enters its own root directory itself (package self).
package security
