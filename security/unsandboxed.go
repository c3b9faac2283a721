//go:build nosandbox

package security

// Sandboxed is false: this build confines no worker. Such a build is only for
// measuring the cost of the confinement.
const Sandboxed = false
