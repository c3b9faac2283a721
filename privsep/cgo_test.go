//go:build cgo

package privsep

// cgo reports that the runtime can't reach all threads, as in a build for -race.
const cgo = true
