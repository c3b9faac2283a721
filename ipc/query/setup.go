package query

import "schedrestd/ipc"

// ReceiveSetup receives the first two messages of a process: its setup, and the
// process attributes that it must have.
func ReceiveSetup[S ipc.Message](c *ipc.Channel) (setup S, attrs *ipc.Attributes, err error) {
	for attrs == nil {
		m, err := c.Receive()
		if err != nil {
			return setup, nil, err
		}
		switch m := m.Message.(type) {
		case S:
			setup = m
		case *ipc.Attributes:
			attrs = m
		}
	}
	return setup, attrs, nil
}
