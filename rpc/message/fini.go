package message

import "schedrestd/rpc/codec"

// AccountingEnd asks the accounting daemon to commit or roll back the changes
// that were made on this connection (AccountingFini). The answer is a
// PersistRC.
type AccountingEnd struct {
	Close  uint16 // 1 if the connection ends
	Commit uint16 // 1 to commit, 0 to roll back
}

// Walk encodes or decodes the fields in wire order.
func (m *AccountingEnd) Walk(c *codec.Codec) {
	c.Uint16("close_conn", &m.Close)
	c.Uint16("commit", &m.Commit)
}
