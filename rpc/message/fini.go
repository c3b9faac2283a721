package message

import "schedrestd/rpc/codec"

// AccountingEnd asks the accounting daemon to keep or to drop what was changed on this
// connection (AccountingFini; answered by a PersistRC).
type AccountingEnd struct {
	Close  uint16 // 1: the connection ends
	Commit uint16 // 1: keep, 0: drop
}

// Walk is the wire's order.
func (m *AccountingEnd) Walk(c *codec.Codec) {
	c.Uint16("close_conn", &m.Close)
	c.Uint16("commit", &m.Commit)
}
