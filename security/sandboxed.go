//go:build !nosandbox

package security

// Sandboxed reports whether this build confines its workers. Only a build for
// measuring the cost of the confinement does not.
const Sandboxed = true
