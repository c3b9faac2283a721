//go:build cgo

package privsep

// cgo reports that this is a build with cgo, which -race needs. In such a build
// Go's runtime can't make a system call on all threads.
const cgo = true
