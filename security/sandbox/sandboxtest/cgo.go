//go:build cgo

package sandboxtest

// Cgo reports that this is a build with cgo, which -race needs. In such a build
// Go's runtime can't make a system call on all threads, so the program can't
// enter the sandbox.
const Cgo = true
