package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// init adds the accounting daemon's records to the lists that the tests use.
func init() {
	add(walks, map[string]func(*codec.Codec){
		"db_step_rec":               func(c *codec.Codec) { accountingStep(c, new(model.AccountingStep)) },
		"db_stats":                  func(c *codec.Codec) { stepStats(c, new(model.StepStats)) },
		"db_accounting_rec":         func(c *codec.Codec) { usage(c, new(model.Usage)) },
		"db_coord_rec":              func(c *codec.Codec) { coordinator(c, new(model.Coordinator)) },
		"db_cluster_accounting_rec": func(c *codec.Codec) { clusterUsage(c, new(model.ClusterUsage)) },
		"reroute_response":          new(Reroute).Walk,
	})
	add(numbers, map[string]Type{
		"answer to DBD_GET_STATS": AccountingGotStats,
	})
	add(messages, map[string]func() Body{
		"Reroute": func() Body { return new(Reroute) },
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
	fuzzed = append(fuzzed, "GetAccountingJobs", "AccountingJobs", "Associations", "Accounts", "Users", "WCKeys", "QOSList", "Clusters", "TRESList", "Reroute")
	addRecordLists()
}
