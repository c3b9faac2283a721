package message

import (
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// recordTables maps the type of each request for a list to the names that the
// protocol's tables use for that list.
var recordTables = map[Type]struct {
	name           string // of the request
	filter, record string // tables of the request and of a record
	walk           func(*codec.Codec)
	stream         any // the type that the answer streams
}{
	1503:                  {"DBD_GET_INSTANCES", "db_instance_cond", "db_instance_rec", walkOf(instance), codec.Stream[model.Instance]{}},
	AccountingGetAccounts: {"DBD_GET_ACCOUNTS", "db_account_cond", "db_account_rec", walkOf(account), codec.Stream[model.Account]{}},
	AccountingGetAssocs:   {"DBD_GET_ASSOCS", "db_assoc_cond", "db_assoc_rec", walkOf(association), codec.Stream[model.Association]{}},
	AccountingGetClusters: {"DBD_GET_CLUSTERS", "db_cluster_cond", "db_cluster_rec", walkOf(cluster), codec.Stream[model.Cluster]{}},
	AccountingGetJobs:     {"DBD_GET_JOBS_COND", "db_job_cond", "db_job_rec", walkOf(accountingJob), codec.Stream[model.AccountingJob]{}},
	AccountingGetQOS:      {"DBD_GET_QOS", "db_qos_cond", "db_qos_rec", walkOf(qos), codec.Stream[model.QOS]{}},
	AccountingGetTRES:     {"DBD_GET_TRES", "db_tres_cond", "db_tres_rec", walkOf(tres), codec.Stream[model.TRES]{}},
	AccountingGetUsers:    {"DBD_GET_USERS", "db_user_cond", "db_user_rec", walkOf(user), codec.Stream[model.User]{}},
	AccountingGetWCKeys:   {"DBD_GET_WCKEYS", "db_wckey_cond", "db_wckey_rec", walkOf(wckey), codec.Stream[model.WCKey]{}},
}

// walkOf returns a function that calls the function walk with a new record.
func walkOf[T any](walk func(*codec.Codec, *T)) func(*codec.Codec) {
	return func(c *codec.Codec) { walk(c, new(T)) }
}

// addRecordLists adds the lists of accounting records to the messages that the
// tests use. Answers that are missing from fuzzed are added at its end, because
// the corpus of FuzzDecode refers to the messages in that list by index.
func addRecordLists() {
	var more []string
	for filter, l := range RecordLists {
		if l.Get == AccountingGetJobPage { // a message of this project, so the protocol's tables lack it
			continue
		}
		question := func() Body { return l.Request(reflect.Zero(filter).Interface()) }
		answer := func() Body { body, _ := l.Answer(nil, nil); return body }
		table, known := recordTables[l.Get]
		if !known {
			panic("recordTables has no row for " + named(question()))
		}
		add(walks, map[string]func(*codec.Codec){table.filter: question().Walk, table.record: table.walk})
		add(numbers, map[string]Type{table.name: l.Get, "answer to " + table.name: l.Got})
		add(messages, map[string]func() Body{named(question()): question, named(answer()): answer})
		comparable = append(comparable, cmpopts.IgnoreUnexported(table.stream))
		if !slices.Contains(fuzzed, named(answer())) {
			more = append(more, named(answer()))
		}
	}
	slices.Sort(more)
	fuzzed = append(append(fuzzed, more...), "GetAccountingJobPage")
}

// named returns the name of the type of a body.
func named(b Body) string { return reflect.TypeOf(b).Elem().Name() }
