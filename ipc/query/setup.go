package query

import "schedrestd/ipc"

// ReceiveSetup receives the first two messages of a process: its setup, and the expected
// process attributes by name. The protocol table prescribes this order.
func ReceiveSetup[S ipc.Message](c *ipc.Channel) (setup S, expect map[string]string, err error) {
	for expect == nil {
		m, err := c.Receive()
		if err != nil {
			return setup, nil, err
		}
		switch m := m.Message.(type) {
		case S:
			setup = m
		case *ipc.Attributes:
			expect = map[string]string{}
			for _, f := range m.Facts {
				expect[f.Name] = f.Value
			}
		}
	}
	return setup, expect, nil
}
