//go:build !failpoint

package failpoint

// Here marks a place at which a test may end the process.
func Here(point string) {}

// Env is what a step process needs in its environment: nothing.
func Env() []string { return nil }
