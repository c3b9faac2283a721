//go:build !uncaged

package security

// Caged tells whether this build confines its workers. Only one that is made to measure what that costs does not.
const Caged = true
