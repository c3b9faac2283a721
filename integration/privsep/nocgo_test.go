//go:build !cgo

package privsep

const cgo = false
