package root

// Variable is the environment variable of a process that starts with
// capabilities over its own namespaces, as it does in a start without root. Its
// value says what they are for.
const Variable = "BORN"

// The values of Variable.
const (
	ForRoot = "root" // it creates its own root, and drops them
	ForNone = "none" // it drops them
)
