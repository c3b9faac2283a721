package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// GetUsers asks for users (table db_user_cond).
type GetUsers struct{ model.UserFilter }

// Walk is the wire's order.
func (m *GetUsers) Walk(c *codec.Codec) {
	c.Uint16("admin_level", &m.AdminLevel)
	codec.Record(c, "assoc_cond", "db_assoc_cond", &m.Assoc, assocFilter)
	texts(c, "def_acct_list", &m.DefaultAccounts)
	texts(c, "def_wckey_list", &m.DefaultWCKeys)
	flag16(c, "with_assocs", &m.WithAssocs)
	flag16(c, "with_coords", &m.WithCoordinates)
	flag16(c, "with_deleted", &m.WithDeleted)
	flag16(c, "with_wckeys", &m.WithWCKeys)
}

// Users answers it.
type Users struct{ Listed[model.User] }

// Walk is the wire's order.
func (m *Users) Walk(c *codec.Codec) { m.walk(c, "db_user_rec", user) }

// user walks a user (table db_user_rec).
func user(c *codec.Codec, u *model.User) {
	if c.Since(codec.V2511) && absent(c) {
		return
	}
	c.Uint16("admin_level", &u.AdminLevel)
	codec.List(c, "assoc_list", "db_assoc_rec", &u.Associations, association)
	codec.List(c, "coord_accts", "db_coord_rec", &u.Coordinates, coordinator)
	if c.Since(codec.V2511) {
		c.Uint32("def_qos_id", &u.DefaultQOSID)
	}
	c.String("default_acct", &u.DefaultAccount)
	c.String("default_wckey", &u.DefaultWCKey)
	c.Uint32("flags", &u.Flags)
	c.String("name", &u.Name)
	c.String("old_name", &u.OldName)
	c.Uint32("uid", &u.UserID)
	codec.List(c, "wckey_list", "db_wckey_rec", &u.WCKeys, wckey)
}

// GetWCKeys asks for workload keys (table db_wckey_cond).
type GetWCKeys struct{ model.WCKeyFilter }

// Walk is the wire's order.
func (m *GetWCKeys) Walk(c *codec.Codec) {
	texts(c, "cluster_list", &m.Clusters)
	texts(c, "format_list", &m.Format)
	texts(c, "id_list", &m.IDs)
	texts(c, "name_list", &m.Names)
	flag16(c, "only_defs", &m.OnlyDefaults)
	c.Time("usage_end", &m.UsageEnd)
	c.Time("usage_start", &m.UsageStart)
	texts(c, "user_list", &m.Users)
	flag16(c, "with_usage", &m.WithUsage)
	flag16(c, "with_deleted", &m.WithDeleted)
}

// WCKeys answers it.
type WCKeys struct{ Listed[model.WCKey] }

// Walk is the wire's order.
func (m *WCKeys) Walk(c *codec.Codec) { m.walk(c, "db_wckey_rec", wckey) }

// wckey walks a workload key (table db_wckey_rec).
func wckey(c *codec.Codec, k *model.WCKey) {
	codec.List(c, "accounting_list", "db_accounting_rec", &k.Usage, usage)
	c.String("cluster", &k.Cluster)
	c.Uint32("flags", &k.Flags)
	c.Uint32("id", &k.ID)
	c.OptUint16("is_def", &k.IsDefault)
	c.String("name", &k.Name)
	c.Uint32("uid", &k.UserID)
	c.String("user", &k.User)
}
