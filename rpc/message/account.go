package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// GetAccounts requests accounts (table db_account_cond).
type GetAccounts struct{ model.AccountFilter }

// Walk encodes or decodes the fields in wire order.
func (m *GetAccounts) Walk(c *codec.Codec) {
	codec.Record(c, "assoc_cond", "db_assoc_cond", &m.Assoc, assocFilter)
	texts(c, "description_list", &m.Descriptions)
	if c.Since(codec.V2405) {
		c.Uint32("flags", (*uint32)(&m.Flags))
	}
	texts(c, "organization_list", &m.Organizations)
	if c.Until(codec.V2405) {
		bit16(c, "with_assocs", &m.Flags, model.AccountWithAssocs)
		bit16(c, "with_coords", &m.Flags, model.AccountWithCoordinators)
		bit16(c, "with_deleted", &m.Flags, model.AccountWithDeleted)
	}
}

var _ = recordList(RecordList{Get: AccountingGetAccounts, Got: AccountingGotAccounts},
	func(f model.AccountFilter) Body { return &GetAccounts{f} }, func() *Accounts { return new(Accounts) })

// Accounts is the answer to GetAccounts.
type Accounts struct{ ListResponse[model.Account] }

// Walk encodes or decodes the fields in wire order.
func (m *Accounts) Walk(c *codec.Codec) { m.walk(c, "db_account_rec", account) }

// account encodes or decodes an account (table db_account_rec).
func account(c *codec.Codec, a *model.Account) {
	codec.List(c, "assoc_list", "db_assoc_rec", &a.Associations, association)
	codec.List(c, "coordinators", "db_coord_rec", &a.Coordinators, coordinator)
	c.Text("description", &a.Description)
	c.Uint32("flags", &a.Flags)
	c.String("name", &a.Name)
	c.Text("organization", &a.Organization)
}

// coordinator encodes or decodes the name of a user who coordinates an account,
// or of an account that a user coordinates (table db_coord_rec).
func coordinator(c *codec.Codec, o *model.Coordinator) {
	c.String("name", &o.Name)
	c.OptUint16("direct", &o.Direct)
}
