package root

// CapsVariable is set in the environment of a process that starts with
// capabilities over its own namespaces. A gateway that was started without root
// starts its workers and services like that. The variable's value names the
// purpose of these capabilities.
const CapsVariable = "BORN"

// The values of CapsVariable.
const (
	CapsForRoot = "root" // it creates its own root, and then drops them
	CapsForNone = "none" // it drops them at once
)
