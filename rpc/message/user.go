package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// GetUsers requests users (table db_user_cond).
type GetUsers struct{ model.UserFilter }

// Walk encodes or decodes the fields in wire order.
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

var _ = recordList(RecordList{Get: AccountingGetUsers, Got: AccountingGotUsers},
	func(f model.UserFilter) Body { return &GetUsers{f} }, func() *Users { return new(Users) })

// Users is the answer to GetUsers.
type Users struct{ ListResponse[model.User] }

// Walk encodes or decodes the fields in wire order.
func (m *Users) Walk(c *codec.Codec) { m.walk(c, "db_user_rec", user) }

// user encodes or decodes a user (table db_user_rec).
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
