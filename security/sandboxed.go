//go:build !nosandbox

package security

// Sandboxed reports whether this build confines its workers. It is false only
// in builds that measure the cost of the confinement.
const Sandboxed = true
