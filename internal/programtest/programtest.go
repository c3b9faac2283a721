// Package programtest writes programs that tests execute.
package programtest

import (
	"errors"
	"os"
	"syscall"
)

// Write writes a program or a script to path, and gives it exactly this mode.
//
// A process that another test starts at the same time inherits the open file
// until it executes its own program, and a file can't be executed while it is open
// for writing (ETXTBSY). So Write lets no process be started meanwhile.
func Write(path string, text []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return errors.Join(os.WriteFile(path, text, mode), os.Chmod(path, mode))
}

// Copy copies a program.
func Copy(from, to string, mode os.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return Write(to, text, mode)
}
