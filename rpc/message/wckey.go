package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// GetWCKeys requests workload keys (table db_wckey_cond).
type GetWCKeys struct{ model.WCKeyFilter }

// Walk encodes or decodes the fields in wire order.
func (m *GetWCKeys) Walk(c *codec.Codec) {
	clusters(c, "cluster_list", &m.Clusters)
	texts(c, "format_list", &m.Format)
	ids(c, "id_list", &m.IDs)
	texts(c, "name_list", &m.Names)
	flag16(c, "only_defs", &m.OnlyDefaults)
	c.Time("usage_end", &m.UsageEnd)
	c.Time("usage_start", &m.UsageStart)
	texts(c, "user_list", &m.Users)
	flag16(c, "with_usage", &m.WithUsage)
	flag16(c, "with_deleted", &m.WithDeleted)
}

var _ = recordList(RecordList{Get: AccountingGetWCKeys, Got: AccountingGotWCKeys},
	func(f model.WCKeyFilter) Body { return &GetWCKeys{f} }, func() *WCKeys { return new(WCKeys) })

// WCKeys is the answer to GetWCKeys.
type WCKeys struct{ ListResponse[model.WCKey] }

// Walk encodes or decodes the fields in wire order.
func (m *WCKeys) Walk(c *codec.Codec) { m.walk(c, "db_wckey_rec", wckey) }

// wckey encodes or decodes a workload key (table db_wckey_rec).
func wckey(c *codec.Codec, k *model.WCKey) {
	codec.List(c, "accounting_list", "db_accounting_rec", &k.Usage, usage)
	c.StringOf(codec.ClusterChars, "cluster", &k.Cluster)
	c.Uint32("flags", &k.Flags)
	c.Uint32("id", &k.ID)
	c.OptUint16("is_def", &k.IsDefault)
	c.String("name", &k.Name)
	c.Uint32("uid", &k.UserID)
	c.String("user", &k.User)
}
