package message

import (
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// The accounting daemon's records, in the lists that the tests go through.
func init() {
	add(walks, map[string]func(*codec.Codec){
		"db_job_cond":               new(GetAccountingJobs).Walk,
		"db_job_rec":                func(c *codec.Codec) { accountingJob(c, new(model.AccountingJob)) },
		"db_step_rec":               func(c *codec.Codec) { accountingStep(c, new(model.AccountingStep)) },
		"db_stats":                  func(c *codec.Codec) { stepStats(c, new(model.StepStats)) },
		"db_assoc_cond":             new(GetAssociations).Walk,
		"db_assoc_rec":              func(c *codec.Codec) { association(c, new(model.Association)) },
		"db_accounting_rec":         func(c *codec.Codec) { usage(c, new(model.Usage)) },
		"db_account_cond":           new(GetAccounts).Walk,
		"db_account_rec":            func(c *codec.Codec) { account(c, new(model.Account)) },
		"db_coord_rec":              func(c *codec.Codec) { coordinator(c, new(model.Coordinator)) },
		"db_user_cond":              new(GetUsers).Walk,
		"db_user_rec":               func(c *codec.Codec) { user(c, new(model.User)) },
		"db_wckey_cond":             new(GetWCKeys).Walk,
		"db_wckey_rec":              func(c *codec.Codec) { wckey(c, new(model.WCKey)) },
		"db_qos_cond":               new(GetQOS).Walk,
		"db_qos_rec":                func(c *codec.Codec) { qos(c, new(model.QOS)) },
		"db_used_limits":            func(c *codec.Codec) { usedLimits(c, new(model.UsedLimits)) },
		"db_cluster_cond":           new(GetClusters).Walk,
		"db_cluster_rec":            func(c *codec.Codec) { cluster(c, new(model.Cluster)) },
		"db_cluster_accounting_rec": func(c *codec.Codec) { clusterUsage(c, new(model.ClusterUsage)) },
		"db_tres_cond":              new(GetTRES).Walk,
		"db_tres_rec":               func(c *codec.Codec) { tres(c, new(model.TRES)) },
		"reroute_response":          new(Reroute).Walk,
	})
	add(numbers, map[string]Type{
		"DBD_GET_ACCOUNTS": AccountingGetAccounts, "answer to DBD_GET_ACCOUNTS": AccountingGotAccounts,
		"DBD_GET_ASSOCS": AccountingGetAssocs, "answer to DBD_GET_ASSOCS": AccountingGotAssocs,
		"DBD_GET_CLUSTERS": AccountingGetClusters, "answer to DBD_GET_CLUSTERS": AccountingGotClusters,
		"DBD_GET_USERS": AccountingGetUsers, "answer to DBD_GET_USERS": AccountingGotUsers,
		"DBD_GET_JOBS_COND": AccountingGetJobs, "answer to DBD_GET_JOBS_COND": AccountingGotJobs,
		"DBD_GET_QOS": AccountingGetQOS, "answer to DBD_GET_QOS": AccountingGotQOS,
		"DBD_GET_WCKEYS": AccountingGetWCKeys, "answer to DBD_GET_WCKEYS": AccountingGotWCKeys,
		"DBD_GET_TRES": AccountingGetTRES, "answer to DBD_GET_TRES": AccountingGotTRES,
		"answer to DBD_GET_STATS": AccountingGotStats,
	})
	add(messages, map[string]func() Body{
		"GetAccountingJobs": func() Body { return new(GetAccountingJobs) },
		"AccountingJobs":    func() Body { return new(AccountingJobs) },
		"GetAssociations":   func() Body { return new(GetAssociations) },
		"Associations":      func() Body { return new(Associations) },
		"GetAccounts":       func() Body { return new(GetAccounts) },
		"Accounts":          func() Body { return new(Accounts) },
		"GetUsers":          func() Body { return new(GetUsers) },
		"Users":             func() Body { return new(Users) },
		"GetWCKeys":         func() Body { return new(GetWCKeys) },
		"WCKeys":            func() Body { return new(WCKeys) },
		"GetQOS":            func() Body { return new(GetQOS) },
		"QOSList":           func() Body { return new(QOSList) },
		"GetClusters":       func() Body { return new(GetClusters) },
		"Clusters":          func() Body { return new(Clusters) },
		"GetTRES":           func() Body { return new(GetTRES) },
		"TRESList":          func() Body { return new(TRESList) },
		"Reroute":           func() Body { return new(Reroute) },
		"UsedLimits":        func() Body { return new(used) },
	})
	add(bodies, map[string]func() Body{
		"1416": func() Body { return new(Accounts) },
		"1417": func() Body { return new(Associations) },
		"1419": func() Body { return new(Clusters) },
		"1421": func() Body { return new(AccountingJobs) },
		"1423": func() Body { return new(Users) },
		"1449": func() Body { return new(QOSList) },
		"1487": func() Body { return new(TRESList) },
	})
	comparable = append(comparable, cmpopts.IgnoreUnexported(codec.Stream[model.AccountingJob]{}, codec.Stream[model.Association]{},
		codec.Stream[model.Account]{}, codec.Stream[model.User]{}, codec.Stream[model.WCKey]{}, codec.Stream[model.QOS]{},
		codec.Stream[model.Cluster]{}, codec.Stream[model.TRES]{}))
	fuzzed = append(fuzzed, "GetAccountingJobs", "AccountingJobs", "Associations", "Accounts", "Users", "WCKeys", "QOSList", "Clusters", "TRESList", "Reroute")
}

// used is a message of one record that no message has yet.
type used struct{ model.UsedLimits }

func (m *used) Walk(c *codec.Codec) { usedLimits(c, &m.UsedLimits) }
