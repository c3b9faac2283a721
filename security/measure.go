package security

import (
	"fmt"
	"os"
)

// namespaces lists the types of namespaces that are part of the process
// attributes, by their names in /proc/PID/ns.
var namespaces = []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}

// Inheritance contains the attributes that every process inherits from the
// thread that starts it.
type Inheritance struct {
	Bounding   string            // capability bounding set, hexadecimal
	Seccomp    string            // seccomp mode; a container's filter is inherited
	Namespaces map[string]string // "ipc" → "ipc:[4026531839]"
}

// ReadInheritance returns the attributes that child processes inherit from one
// thread of this process. The argument is the thread's id.
func ReadInheritance(thread int) (Inheritance, error) {
	return readInheritance(fmt.Sprintf("/proc/self/task/%d/", thread))
}

// readInheritance implements ReadInheritance for the thread whose directory in
// /proc is dir.
func readInheritance(dir string) (Inheritance, error) {
	status, err := readStatus(dir + "status")
	if err != nil {
		return Inheritance{}, err
	}
	ns, err := Namespaces(dir + "ns/")
	if err != nil {
		return Inheritance{}, err
	}
	for _, name := range []string{"pid", "time"} { // a thread stays in its namespace of this type, but its children may begin in another
		if id, err := os.Readlink(dir + "ns/" + name + "_for_children"); err == nil {
			ns[name] = id
		}
	}
	return Inheritance{Bounding: status.Value("CapBnd"), Seccomp: status.Value("Seccomp"), Namespaces: ns}, nil
}

// Namespaces reads the links in dir, such as /proc/self/ns/, and returns their
// targets by type of namespace. A kernel may lack some types.
func Namespaces(dir string) (map[string]string, error) {
	list := map[string]string{}
	for _, name := range namespaces {
		id, err := os.Readlink(dir + name)
		switch {
		case os.IsNotExist(err):
		case err != nil:
			return nil, fmt.Errorf("read the %s namespace: %w", name, err)
		default:
			list[name] = id
		}
	}
	return list, nil
}
