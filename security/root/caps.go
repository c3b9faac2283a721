package root

// CapsVariable is an environment variable that tells a process that it has
// capabilities over its own namespaces. The workers and services of a gateway
// that was started without root have such capabilities. The variable's value
// names the purpose of the capabilities.
const CapsVariable = "BORN"

// The values of CapsVariable.
const (
	CapsForRoot = "root" // the process creates its own root, and then drops the capabilities
	CapsForNone = "none" // it drops them at once
)
