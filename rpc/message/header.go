package message

import (
	"errors"

	"schedrestd/rpc/codec"
)

// Bits of Header.Flags.
const (
	FlagGlobalKey    uint16 = 0x01
	FlagPersistent   uint16 = 0x02 // for messages to slurmdbd, or on a persistent connection
	FlagNoCredential uint16 = 0x40 // no Credential follows
	FlagAddresses    uint16 = 0x80
)

// errForwarded is the error for a message that contains the answers of several
// nodes. Only node daemons receive such messages.
var errForwarded = errors.New("messages that carry answers of other nodes are not supported")

// Header is the beginning of each message (table header).
type Header struct {
	Version    codec.Version
	Flags      uint16
	Type       Type
	BodyLength uint32
	Forward    Forward
	OrigAddr   Addr
}

// Forward describes how a message is forwarded from node to node. If Count is
// 0, the message is not forwarded.
type Forward struct {
	Count          uint16
	NodeList       string
	Timeout        uint32
	TreeWidth      uint16
	NetCredentials string
	TreeDepth      uint16
}

// Addr is a socket address. Family is 2 for IPv4, 10 for IPv6, and 0 if there
// is no address. The address and the port have the byte order of the sender's
// machine.
type Addr struct {
	Family uint16
	Addr4  uint32
	Port4  uint16
	Addr6  []byte // 16 bytes
	Port6  uint16
}

// Walk encodes or decodes the fields in wire order. One of them is the version,
// which determines the encoding of the fields after it.
func (h *Header) Walk(c *codec.Codec) {
	version := uint16(h.Version) << 8
	if c.Uint16("version", &version); c.Storing() {
		h.Version = codec.Version(version >> 8)
	}
	c.Uint16("flags", &h.Flags)
	c.Uint16("msg_type", (*uint16)(&h.Type))
	c.Uint32("body_length", &h.BodyLength)
	c.Uint16("forward.cnt", &h.Forward.Count)
	if c.If("forward.cnt > 0", h.Forward.Count > 0) {
		h.Forward.walk(c, h.Flags)
	}
	c.EndIf()
	var answers uint16
	c.Uint16("ret_cnt", &answers)
	if c.If("ret_cnt > 0", answers > 0) {
		codec.Record(c, "ret_list", "ret_list", &answers, func(c *codec.Codec, _ *uint16) { c.Fail("ret_list", errForwarded) })
	}
	c.EndIf()
	codec.Record(c, "orig_addr", "addr", &h.OrigAddr, addr)
}

func (f *Forward) walk(c *codec.Codec, flags uint16) {
	c.String("forward.nodelist", &f.NodeList)
	c.Uint32("forward.timeout", &f.Timeout)
	c.Uint16("forward.tree_width", &f.TreeWidth)
	if c.Since(codec.V2311) {
		if c.If("flags & 0x80", flags&FlagAddresses != 0) {
			c.String("forward.alias_addrs.net_cred", &f.NetCredentials)
		}
		c.EndIf()
	}
	if c.Since(codec.V2411) {
		c.Uint16("forward.tree_depth", &f.TreeDepth)
	}
}

// addr encodes or decodes a socket address (table addr).
func addr(c *codec.Codec, a *Addr) {
	c.Uint16("family", &a.Family)
	if c.If("family == 2", a.Family == 2) {
		c.Uint32("addr4", &a.Addr4)
		c.Uint16("port4", &a.Port4)
	}
	c.EndIf()
	if c.If("family == 10", a.Family == 10) {
		c.Mem("addr6", &a.Addr6)
		if c.Decoding() && len(a.Addr6) != 16 {
			c.Fail("addr6", codec.ErrShort)
		}
		c.Uint16("port6", &a.Port6)
	}
	c.EndIf()
}
