package root

// Variable is the environment variable of a process that starts with
// capabilities over its own namespaces, as in a start without root. Its value
// names the purpose of the capabilities.
const Variable = "BORN"

// The values of Variable.
const (
	ForRoot = "root" // it creates its own root, and then drops them
	ForNone = "none" // it drops them at once
)
