//go:build uncaged

package security

// Caged tells that this build confines no worker: it is for measuring what that costs, and for nothing else.
const Caged = false
