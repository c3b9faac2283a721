//go:build !failpoint

package failpoint

// Here marks a place at which a test may end the process.
func Here(point string) {}

// Env returns nil: a step process needs no variable.
func Env() []string { return nil }
