package server

import (
	"schedrestd/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Request is one message whose sender is known and whose body is still bytes.
type Request struct {
	Type     message.Type
	Version  codec.Version
	Identity Identity
	Cluster  string // as the opener of a connection that stays named it
	Peer     string // for logs: an address, or a uid

	server *Server
	body   []byte
	front  func(t message.Type, n int) ([]byte, error) // what precedes a body of n bytes in an answer
}

// Decode reads the body; bytes left over are an error. A handler calls it once, first.
func (r *Request) Decode(body message.Body) error {
	return errs.Wrap(message.DecodeBody(r.Version, r.Type, r.body, body), errs.Malformed, "the message can't be understood")
}
