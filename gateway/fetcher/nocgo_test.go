//go:build !cgo

package fetcher

const cgo = false
