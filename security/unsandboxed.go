//go:build nosandbox

package security

// Sandboxed is false, because this build confines no worker. It is only for
// measuring the cost of the confinement.
const Sandboxed = false
