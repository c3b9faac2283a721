package handlers

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strconv"
	"sync"

	"schedrestd/api/openapi"
	"schedrestd/plugin"
)

// documentPages are the paths of the OpenAPI document. It is served without a token: it is read off the
// tables of this program, tells nothing of the site but which paths, versions and ways to
// authenticate there are, and the tools that fetch it have no token yet. In the paths with
// a suffix that decides the format, in the others Accept.
func (h *handler) documentPages() map[string]page {
	as := func(media ...string) page { return page{id: "openapi", media: media, do: h.getDocument} }
	return map[string]page{
		"openapi":      as(bodyMedia...),
		"openapi/v3":   as(bodyMedia...),
		"openapi.json": as(mediaJSON),
		"openapi.yaml": as(mediaYAML, mediaXYAML),
	}
}

// getDocument sends the document. It is written when it is first asked for, not when a worker starts, and kept: anybody can ask
// without a token, and to write it, and to compress it, takes hundreds of times what sending it does.
func (h *handler) getDocument(c *call) error {
	body, err := h.document.as(c)
	if err != nil {
		return err
	}
	header := c.header(c.media)
	if c.coding.name != "" {
		header.Set("Content-Encoding", c.coding.name)
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(http.StatusOK)
	_, err = c.w.Write(body)
	return err
}

// document is the OpenAPI document in each format and coding that it was asked for in: half a megabyte, compressed a tenth of it.
type document struct {
	collect func() (*openapi.Document, error)

	mu   sync.Mutex
	list map[[2]string][]byte
}

// as is the document in the format and coding that c's client wants.
func (d *document) as(c *call) ([]byte, error) {
	key := [2]string{c.media, c.coding.name}
	d.mu.Lock()
	defer d.mu.Unlock()
	if body, ok := d.list[key]; ok {
		return body, nil
	}
	collected, err := d.collect()
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if c.coding.name == "" {
		err = d.write(c, collected, &body)
	} else {
		coder := coded(c.coding.name, &body)
		defer release(c.coding.name, coder)
		err = cmp.Or(d.write(c, collected, coder), coder.Close())
	}
	if err != nil {
		return nil, err
	}
	if d.list == nil {
		d.list = map[[2]string][]byte{}
	}
	d.list[key] = bytes.Clone(body.Bytes())
	return d.list[key], nil
}

func (d *document) write(c *call, collected *openapi.Document, to io.Writer) error {
	out := c.h.formats.take(c.media, to)
	defer c.h.formats.give(c.media, out)
	collected.Write(out)
	return cmp.Or(out.Err(), out.Flush())
}

// described says what is served here.
func (h *handler) described() openapi.Options {
	o := openapi.Options{
		Parsers: h.Parsers, Names: h.Names, Content: h.Content,
		Statuses: h.Statuses, Release: h.Release, YAML: true,
	}
	if h.Accounting == nil {
		o.Content &^= plugin.Accounting
	}
	if h.Auth.JWT {
		o.Auth |= plugin.JWT
	}
	if h.Auth.Local {
		o.Auth |= plugin.Local
	}
	return o
}
