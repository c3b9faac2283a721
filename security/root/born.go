package root

// Variable is what a process has in its environment that was born with capabilities over namespaces of its own, as one that
// was started without root is. Its value says what they are for.
const Variable = "BORN"

// The values of Variable.
const (
	ForRoot = "root" // it makes a root of its own, and drops them
	ForNone = "none" // it drops them
)
