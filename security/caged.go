//go:build !uncaged

package security

// Caged reports whether this build confines its workers. Only a build for
// measuring the cost of the confinement does not.
const Caged = true
