package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// GetTRES requests trackable resources (table db_tres_cond).
type GetTRES struct{ model.TRESFilter }

// Walk encodes or decodes the fields in wire order.
func (m *GetTRES) Walk(c *codec.Codec) {
	c.Uint64("count", &m.Count)
	texts(c, "format_list", &m.Format)
	ids(c, "id_list", &m.IDs)
	texts(c, "name_list", &m.Names)
	texts(c, "type_list", &m.Types)
	flag16(c, "with_deleted", &m.WithDeleted)
}

var _ = recordList(RecordList{Get: AccountingGetTRES, Got: AccountingGotTRES},
	func(f model.TRESFilter) Body { return &GetTRES{f} }, func() *TRESList { return new(TRESList) })

// TRESList is the answer to GetTRES.
type TRESList struct{ ListResponse[model.TRES] }

// Walk encodes or decodes the fields in wire order.
func (m *TRESList) Walk(c *codec.Codec) { m.walk(c, "db_tres_rec", tres) }

// tres encodes or decodes a trackable resource (table db_tres_rec).
func tres(c *codec.Codec, t *model.TRES) {
	c.Uint64("alloc_secs", &t.AllocSecs)
	c.Uint64("count", &t.Count)
	c.Uint32("id", &t.ID)
	c.String("name", &t.Name)
	c.String("type", &t.Type)
}
