package rest

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strconv"
	"sync"

	"schedrestd/api/schema"
)

// Cached is an answer that is the same for all clients. It is encoded once in
// each format and coding that clients request, and then kept in memory.
type Cached struct {
	write func(schema.Encoder) error

	mu     sync.Mutex           // guards bodies; held while a body is encoded, so that it is encoded once
	bodies map[[2]string][]byte // by media type and coding
}

// NewCached returns an answer whose body the function write encodes.
func NewCached(write func(schema.Encoder) error) *Cached { return &Cached{write: write} }

// SendCached answers with a in the negotiated format and coding.
func (c *Call) SendCached(a *Cached) error {
	body, err := a.encoded(c)
	if err != nil {
		return err
	}
	c.SetContentType(c.media)
	header := c.Header()
	if c.coding.name != "" {
		header.Set("Content-Encoding", c.coding.name)
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(http.StatusOK)
	_, err = c.w.Write(body)
	return err
}

// encoded returns the body in the negotiated format and coding.
func (a *Cached) encoded(c *Call) ([]byte, error) {
	key := [2]string{c.media, c.coding.name}
	a.mu.Lock()
	defer a.mu.Unlock()
	if body, ok := a.bodies[key]; ok {
		return body, nil
	}
	var body bytes.Buffer
	var err error
	if c.coding.name == "" {
		err = a.encode(c, &body)
	} else {
		coder := getCoder(c.coding.name, &body)
		defer putCoder(c.coding.name, coder)
		err = cmp.Or(a.encode(c, coder), coder.Close())
	}
	if err != nil {
		return nil, err
	}
	if a.bodies == nil {
		a.bodies = map[[2]string][]byte{}
	}
	a.bodies[key] = bytes.Clone(body.Bytes())
	return a.bodies[key], nil
}

func (a *Cached) encode(c *Call, to io.Writer) error {
	out := c.server.formats.get(c.media, to)
	defer c.server.formats.put(c.media, out)
	return cmp.Or(a.write(out), out.Err(), out.Flush())
}
