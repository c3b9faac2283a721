package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// LicenseInfoRequest requests all licenses (table license_info_request).
type LicenseInfoRequest struct {
	LastUpdate model.Time // licenses are returned only if something changed after this time; if 0, always
	ShowFlags  uint16     // a model.Show
}

// Walk encodes or decodes the fields in wire order.
func (m *LicenseInfoRequest) Walk(c *codec.Codec) {
	c.Time("last_update", &m.LastUpdate)
	c.Uint16("show_flags", &m.ShowFlags)
}

// LicenseInfo answers LicenseInfoRequest (table license_info_response).
type LicenseInfo struct {
	LastUpdate model.Time
	Licenses   codec.Stream[model.License]
}

// Walk encodes or decodes the fields in wire order.
func (m *LicenseInfo) Walk(c *codec.Codec) {
	n := c.Count("num_lic", m.Licenses.Size())
	c.Time("last_update", &m.LastUpdate)
	c.Loop("num_lic", n, func(int) { codec.Inline(c, "num_lic", &m.Licenses, license) })
}

func license(c *codec.Codec, l *model.License) {
	c.String("name", &l.Name)
	c.Uint32("total", &l.Total)
	c.Uint32("in_use", &l.InUse)
	c.Uint32("reserved", &l.Reserved)
	flag8(c, "remote", &l.Remote)
	if c.Since(codec.V2302) {
		c.Uint32("last_consumed", &l.LastConsumed)
		c.Uint32("last_deficit", &l.LastDeficit)
		c.Time("last_update", &l.LastUpdate)
	}
	if c.Since(codec.V2505) {
		c.Uint8("mode", &l.Mode)
		c.String("nodes", &l.Nodes)
	}
}
