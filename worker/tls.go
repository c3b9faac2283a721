package worker

import (
	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// secure is what a worker needs for connections of https:// listeners.
type secure struct{}

// hear takes what the parent says about TLS.
func (s *secure) hear(m ipc.Received) error {
	for _, fd := range m.FDs {
		unix.Close(fd)
	}
	return nil
}
