package handlers

import (
	"bytes"
	"cmp"
	"io"
	"sync"

	"schedrestd/api/openapi"
)

// document caches the OpenAPI document in each format and coding that has been
// requested so far. Each copy takes half a megabyte, or a tenth of that if
// compressed.
type document struct {
	collect func() (*openapi.Document, error)

	mu    sync.Mutex
	cache map[[2]string][]byte
}

// encoded returns the document in the negotiated format and coding.
func (d *document) encoded(c *call) ([]byte, error) {
	key := [2]string{c.media, c.coding.name}
	d.mu.Lock()
	defer d.mu.Unlock()
	if body, ok := d.cache[key]; ok {
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
		coder := getCoder(c.coding.name, &body)
		defer putCoder(c.coding.name, coder)
		err = cmp.Or(d.write(c, collected, coder), coder.Close())
	}
	if err != nil {
		return nil, err
	}
	if d.cache == nil {
		d.cache = map[[2]string][]byte{}
	}
	d.cache[key] = bytes.Clone(body.Bytes())
	return d.cache[key], nil
}

func (d *document) write(c *call, collected *openapi.Document, to io.Writer) error {
	out := c.h.formats.get(c.media, to)
	defer c.h.formats.put(c.media, out)
	collected.Write(out)
	return cmp.Or(out.Err(), out.Flush())
}
