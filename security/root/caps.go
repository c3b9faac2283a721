package root

// CapsVariable is the name of an environment variable. It tells a process that
// the process has capabilities over its own namespaces. If the gateway was
// started without root privileges, its workers and services have such
// capabilities. The variable's value names the purpose of the capabilities.
const CapsVariable = "BORN"

// The values of CapsVariable.
const (
	CapsForRoot = "root" // the process creates its own root, and then drops the capabilities
	CapsForNone = "none" // it drops them at once
)
