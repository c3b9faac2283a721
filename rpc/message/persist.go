package message

import "schedrestd/rpc/codec"

// PersistInit opens a persistent connection (table dbd_persist_init). The
// credential that comes with it applies to the whole connection.
type PersistInit struct {
	Version     codec.Version // version that both sides use for the rest of the connection
	ClusterName string
	PersistType uint16 // 1 for a connection to the accounting daemon
	Port        uint16
}

// PersistToAccounting is the PersistType of a client of the accounting daemon.
const PersistToAccounting = 1

// Walk encodes or decodes the fields in wire order.
func (m *PersistInit) Walk(c *codec.Codec) {
	version := uint16(m.Version) << 8
	if c.Uint16("version", &version); c.Storing() {
		m.Version = codec.Version(version >> 8)
	}
	c.String("cluster_name", &m.ClusterName)
	c.Uint16("persist_type", &m.PersistType)
	c.Uint16("port", &m.Port)
}

// PersistRC is the accounting daemon's short answer (table dbd_persist_rc).
type PersistRC struct {
	Comment string
	Flags   uint16
	Code    uint32 // 0, or one of Slurm's error numbers
	Info    uint16 // in answer to a PersistInit, the version; otherwise the number of the request
}

// Walk encodes or decodes the fields in wire order.
func (m *PersistRC) Walk(c *codec.Codec) {
	c.String("comment", &m.Comment)
	c.Uint16("flags", &m.Flags)
	c.Uint32("rc", &m.Code)
	c.Uint16("ret_info", &m.Info)
}
