//go:build !nosandbox

package security

// Sandboxed reports whether this build confines its workers. The only builds
// that do not are for measuring the cost of the confinement.
const Sandboxed = true
