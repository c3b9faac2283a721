//go:build !failpoint

package failpoint

// Here marks a place at which a test may kill the process.
func Here(point string) {}

// Env returns nil, because in this build a step process needs no variable.
func Env() []string { return nil }
