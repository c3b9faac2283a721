package message

import (
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// init extends the lists that the tests use. It adds the messages that change
// the accounting daemon's records.
func init() {
	add(walks, map[string]func(*codec.Codec){
		"dbd_acct_coord_msg": new(Coordinators).Walk,
		"db_add_assoc_cond":  func(c *codec.Codec) { assocSet(c, new(model.AssocSet)) },
		"dbd_fini":           new(AccountingEnd).Walk,
		"dbd_slurmdbd_conf":  func(c *codec.Codec) { accountingConf(c, new(model.AccountingConf)) },
	})
	add(numbers, map[string]Type{
		"DBD_ADD_ACCOUNTS": AccountingAddAccounts, "answer to DBD_ADD_ACCOUNTS": AccountingRC,
		"DBD_ADD_ACCOUNT_COORDS": AccountingAddCoords, "answer to DBD_ADD_ACCOUNT_COORDS": AccountingRC,
		"DBD_ADD_ASSOCS": AccountingAddAssocs, "answer to DBD_ADD_ASSOCS": AccountingRC,
		"DBD_ADD_CLUSTERS": AccountingAddClusters, "answer to DBD_ADD_CLUSTERS": AccountingRC,
		"DBD_ADD_USERS": AccountingAddUsers, "answer to DBD_ADD_USERS": AccountingRC,
		"DBD_ADD_QOS": AccountingAddQOS, "answer to DBD_ADD_QOS": AccountingRC,
		"DBD_ADD_WCKEYS": AccountingAddWCKeys, "answer to DBD_ADD_WCKEYS": AccountingRC,
		"DBD_ADD_ACCOUNTS_COND": AccountingAddAccountsTo, "answer to DBD_ADD_ACCOUNTS_COND": AccountingRC,
		"DBD_ADD_USERS_COND": AccountingAddUsersTo, "answer to DBD_ADD_USERS_COND": AccountingRC,
		"DBD_MODIFY_ACCOUNTS": AccountingModifyAccounts, "answer to DBD_MODIFY_ACCOUNTS": AccountingGotList,
		"DBD_MODIFY_ASSOCS": AccountingModifyAssocs, "answer to DBD_MODIFY_ASSOCS": AccountingGotList,
		"DBD_MODIFY_USERS": AccountingModifyUsers, "answer to DBD_MODIFY_USERS": AccountingGotList,
		"DBD_MODIFY_QOS": AccountingModifyQOS, "answer to DBD_MODIFY_QOS": AccountingGotList,
		"DBD_MODIFY_JOB": AccountingModifyJobs, "answer to DBD_MODIFY_JOB": AccountingGotList,
		"DBD_REMOVE_ACCOUNTS": AccountingRemoveAccounts, "answer to DBD_REMOVE_ACCOUNTS": AccountingGotList,
		"DBD_REMOVE_ACCOUNT_COORDS": AccountingRemoveCoords, "answer to DBD_REMOVE_ACCOUNT_COORDS": AccountingGotList,
		"DBD_REMOVE_ASSOCS": AccountingRemoveAssocs, "answer to DBD_REMOVE_ASSOCS": AccountingGotList,
		"DBD_REMOVE_CLUSTERS": AccountingRemoveClusters, "answer to DBD_REMOVE_CLUSTERS": AccountingGotList,
		"DBD_REMOVE_USERS": AccountingRemoveUsers, "answer to DBD_REMOVE_USERS": AccountingGotList,
		"DBD_REMOVE_QOS": AccountingRemoveQOS, "answer to DBD_REMOVE_QOS": AccountingGotList,
		"DBD_REMOVE_WCKEYS": AccountingRemoveWCKeys, "answer to DBD_REMOVE_WCKEYS": AccountingGotList,
		"DBD_GET_CONFIG": AccountingGetConf,
	})
	add(messages, map[string]func() Body{
		"Names":              func() Body { return new(Names) },
		"ModifyAccounts":     func() Body { return new(ModifyAccounts) },
		"ModifyAssociations": func() Body { return new(ModifyAssociations) },
		"ModifyQOS":          func() Body { return new(ModifyQOS) },
		"ModifyUsers":        func() Body { return new(ModifyUsers) },
		"ModifyJobs":         func() Body { return new(ModifyJobs) },
		"Coordinators":       func() Body { return new(Coordinators) },
		"AddAccountsTo":      func() Body { return new(AddAccountsTo) },
		"AddUsersTo":         func() Body { return new(AddUsersTo) },
		"AccountingEnd":      func() Body { return new(AccountingEnd) },
		"AccountingConf":     func() Body { return new(AccountingConf) },
	})
	comparable = append(comparable, cmpopts.IgnoreUnexported(codec.Stream[string]{}))
	fuzzed = append(fuzzed, "Names", "ModifyAccounts", "ModifyAssociations", "ModifyQOS", "ModifyUsers", "ModifyJobs", "Coordinators",
		"AddAccountsTo", "AddUsersTo", "AccountingConf")
}
