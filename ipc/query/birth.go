package query

import "schedrestd/ipc"

// HearBirth receives the two messages that come before everything else: a setup, and
// what the kernel must say about this process, by name. The book has them in this order.
func HearBirth[S ipc.Message](c *ipc.Channel) (setup S, expect map[string]string, err error) {
	for expect == nil {
		m, err := c.Receive()
		if err != nil {
			return setup, nil, err
		}
		switch m := m.Message.(type) {
		case S:
			setup = m
		case *ipc.Posture:
			expect = map[string]string{}
			for _, f := range m.Facts {
				expect[f.Name] = f.Value
			}
		}
	}
	return setup, expect, nil
}
