package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// Changes to the accounting daemon's records.
//
// To add records, a client sends the body of an answer (Accounts, QOSList …)
// with the message type of an addition (AccountingAddAccounts …), and receives
// a PersistRC. To remove records, it sends the body of a query (GetAccounts,
// GetQOS …) with the message type of a removal (AccountingRemoveAccounts …),
// and receives Names. Coordinators, AddAccountsTo and AddUsersTo are messages
// that exist only for changes. An AccountingEnd commits the changes.

// Names lists the records that were changed, or the records that prevented the
// change.
type Names struct{ ListResponse[string] }

// Walk encodes or decodes the fields in wire order.
func (m *Names) Walk(c *codec.Codec) { m.walk(c, "str", text) }

// ModifyAccounts changes accounts. Names is the answer to this message and to
// the other Modify messages.
type ModifyAccounts struct {
	Filter GetAccounts
	Record model.Account
}

// Walk encodes or decodes the fields in wire order.
func (m *ModifyAccounts) Walk(c *codec.Codec) { m.Filter.Walk(c); account(c, &m.Record) }

// ModifyAssociations changes associations.
type ModifyAssociations struct {
	Filter GetAssociations
	Record model.Association
}

// Walk encodes or decodes the fields in wire order.
func (m *ModifyAssociations) Walk(c *codec.Codec) { m.Filter.Walk(c); association(c, &m.Record) }

// ModifyQOS changes qualities of service.
type ModifyQOS struct {
	Filter GetQOS
	Record model.QOS
}

// Walk encodes or decodes the fields in wire order.
func (m *ModifyQOS) Walk(c *codec.Codec) { m.Filter.Walk(c); qos(c, &m.Record) }

// ModifyUsers changes users.
type ModifyUsers struct {
	Filter GetUsers
	Record model.User
}

// Walk encodes or decodes the fields in wire order.
func (m *ModifyUsers) Walk(c *codec.Codec) { m.Filter.Walk(c); user(c, &m.Record) }

// ModifyJobs changes recorded jobs.
type ModifyJobs struct {
	Filter GetAccountingJobs
	Record model.AccountingJob
}

// Walk encodes or decodes the fields in wire order.
func (m *ModifyJobs) Walk(c *codec.Codec) { m.Filter.Walk(c); accountingJob(c, &m.Record) }

// Coordinators adds or removes users as coordinators of accounts (table
// dbd_acct_coord_msg). The answer to an addition is a PersistRC, and the answer
// to a removal is Names.
type Coordinators struct {
	Accounts []string
	Users    GetUsers
}

// Walk encodes or decodes the fields in wire order.
func (m *Coordinators) Walk(c *codec.Codec) {
	texts(c, "acct_list", &m.Accounts)
	codec.Record(c, "cond", "db_user_cond", &m.Users, func(c *codec.Codec, u *GetUsers) { u.Walk(c) })
}

// AddAccountsTo adds accounts and associations. The answer is a PersistRC,
// whose comment lists what was added. Daemons support this message from
// protocol 40 on.
type AddAccountsTo struct{ model.AddAccountsWithAssocs }

// Walk encodes or decodes the fields in wire order.
func (m *AddAccountsTo) Walk(c *codec.Codec) { assocSet(c, &m.AssocSet); account(c, &m.Account) }

// AddUsersTo adds users and associations. The answer has the same form as the
// answer to AddAccountsTo.
type AddUsersTo struct{ model.AddUsersWithAssocs }

// Walk encodes or decodes the fields in wire order.
func (m *AddUsersTo) Walk(c *codec.Codec) { assocSet(c, &m.AssocSet); user(c, &m.User) }

// assocSet encodes or decodes the names of associations (table
// db_add_assoc_cond).
func assocSet(c *codec.Codec, s *model.AssocSet) {
	if c.Until(codec.V2311) {
		return
	}
	texts(c, "acct_list", &s.Accounts)
	codec.Record(c, "assoc", "db_assoc_rec", &s.Assoc, association)
	clusters(c, "cluster_list", &s.Clusters)
	texts(c, "partition_list", &s.Partitions)
	texts(c, "user_list", &s.Users)
	texts(c, "wckey_list", &s.WCKeys)
}
