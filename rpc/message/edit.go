package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// Changes to records of the accounting daemon. A request that adds records is a
// list of them, as the answer that lists them is (Accounts, QOSList …); it is
// answered by a PersistRC. One that removes records is the filter of the request
// that asks for them (GetAccounts, GetQOS …); it is answered by Names. All need
// an AccountingEnd to be kept.

// Names lists what was changed, or what keeps the daemon from changing anything.
type Names struct{ Listed[string] }

// Walk is the wire's order.
func (m *Names) Walk(c *codec.Codec) { m.walk(c, "str", text) }

// ModifyAccounts changes accounts; answered by Names, as the other Modify messages.
type ModifyAccounts struct {
	Filter GetAccounts
	Record model.Account
}

// Walk is the wire's order.
func (m *ModifyAccounts) Walk(c *codec.Codec) { m.Filter.Walk(c); account(c, &m.Record) }

// ModifyAssociations changes associations.
type ModifyAssociations struct {
	Filter GetAssociations
	Record model.Association
}

// Walk is the wire's order.
func (m *ModifyAssociations) Walk(c *codec.Codec) { m.Filter.Walk(c); association(c, &m.Record) }

// ModifyQOS changes qualities of service.
type ModifyQOS struct {
	Filter GetQOS
	Record model.QOS
}

// Walk is the wire's order.
func (m *ModifyQOS) Walk(c *codec.Codec) { m.Filter.Walk(c); qos(c, &m.Record) }

// ModifyUsers changes users.
type ModifyUsers struct {
	Filter GetUsers
	Record model.User
}

// Walk is the wire's order.
func (m *ModifyUsers) Walk(c *codec.Codec) { m.Filter.Walk(c); user(c, &m.Record) }

// ModifyJobs changes recorded jobs.
type ModifyJobs struct {
	Filter GetAccountingJobs
	Record model.AccountingJob
}

// Walk is the wire's order.
func (m *ModifyJobs) Walk(c *codec.Codec) { m.Filter.Walk(c); accountingJob(c, &m.Record) }

// Coordinators names accounts, and users who are to be, or no longer to be, their
// coordinators (table dbd_acct_coord_msg). To add them is answered by a
// PersistRC, to remove them by Names.
type Coordinators struct {
	Accounts []string
	Users    GetUsers
}

// Walk is the wire's order.
func (m *Coordinators) Walk(c *codec.Codec) {
	texts(c, "acct_list", &m.Accounts)
	codec.Record(c, "cond", "db_user_cond", &m.Users, func(c *codec.Codec, u *GetUsers) { u.Walk(c) })
}

// AddAccountsTo adds accounts and associations. The comment of the PersistRC that
// answers it says in words what was added. Daemons know it from protocol 40 on.
type AddAccountsTo struct{ model.AddAccountsTo }

// Walk is the wire's order.
func (m *AddAccountsTo) Walk(c *codec.Codec) { assocSet(c, &m.AssocSet); account(c, &m.Account) }

// AddUsersTo is AddAccountsTo for users.
type AddUsersTo struct{ model.AddUsersTo }

// Walk is the wire's order.
func (m *AddUsersTo) Walk(c *codec.Codec) { assocSet(c, &m.AssocSet); user(c, &m.User) }

// assocSet walks the names of associations (table db_add_assoc_cond).
func assocSet(c *codec.Codec, s *model.AssocSet) {
	if c.Until(codec.V2311) {
		return
	}
	texts(c, "acct_list", &s.Accounts)
	codec.Record(c, "assoc", "db_assoc_rec", &s.Assoc, association)
	texts(c, "cluster_list", &s.Clusters)
	texts(c, "partition_list", &s.Partitions)
	texts(c, "user_list", &s.Users)
	texts(c, "wckey_list", &s.WCKeys)
}
