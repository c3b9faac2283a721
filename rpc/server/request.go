package server

import (
	"schedrestd/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Request is a message whose sender is verified and whose body is not yet
// decoded.
type Request struct {
	Type     message.Type
	Version  codec.Version
	Identity Identity
	Cluster  string   // as the first message of a persistent connection named it
	Peer     string   // for logs: an address, or a uid
	Session  *Session // of a persistent connection; otherwise nil

	server *Server
	body   []byte
	front  func(t message.Type, n int) ([]byte, error) // bytes before a body of n bytes in an answer
}

// Session is what handlers keep between the requests of a persistent
// connection, which are handled one after the other.
type Session struct {
	Value any
	Close func() // called when the connection has ended, unless nil
}

// Decode decodes the body. Bytes left over are an error. A handler calls it
// first, and once.
func (r *Request) Decode(body message.Body) error {
	return errs.Wrap(message.DecodeBody(r.Version, r.Type, r.body, body), errs.Malformed, "the message is malformed")
}
