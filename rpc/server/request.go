package server

import (
	"schedrestd/internal/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Request is a message whose sender was verified. Its body has not been decoded
// yet.
type Request struct {
	Type     message.Type
	Version  codec.Version
	Identity Identity
	Cluster  string   // name in the first message of a persistent connection
	Peer     string   // for logs: an address, or a uid
	Session  *Session // session of a persistent connection; otherwise nil

	server *Server
	body   []byte
	front  func(t message.Type, n int) ([]byte, error) // returns the part of an answer that precedes its body of n bytes
}

// Session holds the data that handlers keep between the requests of a
// persistent connection. These requests are handled one after the other.
type Session struct {
	Value any
	Close func() // called when the connection has ended, unless nil
}

// Decode decodes the body. It returns an error if bytes are left over. A
// handler must call Decode once, before it does anything else.
func (r *Request) Decode(body message.Body) error {
	return errs.Wrap(message.DecodeBody(r.Version, r.Type, r.body, body), errs.Malformed, "the message is malformed")
}
