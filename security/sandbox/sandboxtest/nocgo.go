//go:build !cgo

package sandboxtest

// Cgo is false, because this is a build without cgo.
const Cgo = false
