package slurm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"schedrestd/integration/slurm/variant"
)

// combine returns the function combinations of a target: each value of each
// parameter with each value of the others, and each parameter absent. The
// function confined reports whether a combination can only match objects of the
// trial. Through Slurm's gateway, others would remove what other tests need.
func combine(values map[string][]variant.Case, confined func([]variant.Case) bool) func() [][]variant.Case {
	return func() (list [][]variant.Case) {
		list = [][]variant.Case{nil}
		for _, name := range slices.Sorted(mapKeys(values)) {
			var longer [][]variant.Case
			for _, c := range list {
				longer = append(longer, c)
				for _, value := range values[name] {
					longer = append(longer, append(slices.Clone(c), value))
				}
			}
			list = longer
		}
		return slices.DeleteFunc(list, func(c []variant.Case) bool { return !confined(c) })
	}
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// condition returns the values of a parameter of a condition. Each is a pair of
// a form and a text.
func condition(name string, formsAndTexts ...string) (list []variant.Case) {
	for i := 0; i < len(formsAndTexts); i += 2 {
		text, _ := json.Marshal(formsAndTexts[i+1])
		if strings.HasPrefix(formsAndTexts[i+1], "[") {
			text = []byte(formsAndTexts[i+1])
		}
		list = append(list, variant.Case{Field: name, Form: formsAndTexts[i], Value: string(text)})
	}
	return list
}

// namesOwn reports whether one of the conditions can only match objects of the
// trial, or none at all.
func namesOwn(cases []variant.Case) bool {
	return slices.ContainsFunc(cases, func(c variant.Case) bool {
		return slices.Contains([]string{"account", "user", "partition"}, c.Field) && (strings.Contains(c.Value, "NAME") || strings.Contains(c.Value, "nosuch"))
	})
}

// The conditions for associations are all combinations of cluster, account, user
// and partition: each absent, with a value that exists, with one that does not,
// and with two.
var associationConditions = combine(map[string][]variant.Case{
	"account":   condition("account", "known", "NAME", "another known", "xNAME", "unknown", "nosuchaccount", "two", "NAME,xNAME", "two parameters", `["NAME", "xNAME"]`, "known and unknown", "NAME,nosuchaccount", "empty text", ""),
	"cluster":   condition("cluster", "known", "lab", "unknown", "nosuchcluster", "two", "lab,other", "empty text", ""),
	"partition": condition("partition", "known", "pNAME", "unknown", "nosuchpartition", "two", "pNAME,qNAME", "empty text", ""),
	"user":      condition("user", "known", "uNAME", "unknown", "nosuchuser", "two", "uNAME,vNAME", "upper case", "UNAME", "empty text", ""),
}, namesOwn)

// matchingAssociations returns those of our associations that the conditions of
// a trial match, and those below a matching account.
func matchingAssociations(tr *trial, list []shown) (matching []shown) {
	columns := map[string]string{"account": "Account", "cluster": "Cluster", "partition": "Partition", "user": "User"}
	gone := map[string]bool{} // accounts that go, with all below them
	for range 2 {             // NAME, and then xNAME below it
		matching = nil
		for _, o := range list {
			matches := !slices.ContainsFunc(tr.cases, func(c variant.Case) bool {
				var one string
				var several []string
				if json.Unmarshal([]byte(c.Value), &one) == nil {
					several = strings.Split(one, ",")
				} else if json.Unmarshal([]byte(c.Value), &several) != nil {
					return true
				}
				return !slices.ContainsFunc(several, func(value string) bool { return strings.EqualFold(value, o[columns[c.Field]]) })
			})
			if matches || gone[o["Account"]] || gone[o["ParentName"]] {
				matching = append(matching, o)
				if o["User"] == "" {
					gone[o["Account"]] = true
				}
			}
		}
	}
	return matching
}

// checkRemoved checks that our gateway has removed the records that match the
// conditions of a trial, and no others.
func (c *changeForms) checkRemoved(tr *trial) {
	const label = "sacctmgr assoc"
	if slices.ContainsFunc(tr.cases, func(c variant.Case) bool { return c.Form == "empty text" }) {
		return // both gateways' answers are compared
	}
	want := tr.target.matches(tr, tr.before[1][label])
	left := map[string]bool{}
	for _, o := range tr.effects[1][label] {
		left[o.text()] = true
	}
	for _, o := range tr.before[1][label] {
		matches := slices.ContainsFunc(want, func(p shown) bool { return maps.Equal(o, p) })
		switch {
		case matches && left[o.text()]:
			c.differs(tr, "ours leaves a record that matches")
		case !matches && !left[o.text()]:
			c.differs(tr, "ours removes a record that does not match")
		}
	}
}

// makeTrees makes for each name the accounts NAME and, below it, xNAME, and
// associations of the users uNAME and vNAME with and without partitions.
func makeTrees(c *changeForms, names []string) {
	c.t.Helper()
	makeAccounts(c, names)
	var below, users []string
	for _, name := range names {
		below = append(below, fmt.Sprintf(`{"account": "x%s", "cluster": "lab", "user": "", "parent_account": "%s"}`, name, name))
		for _, user := range []string{`"account": "NAME", "user": "uNAME"`, `"account": "NAME", "user": "uNAME", "partition": "pNAME"`, `"account": "xNAME", "user": "uNAME", "partition": "qNAME"`, `"account": "NAME", "user": "vNAME"`, `"account": "xNAME", "user": "vNAME", "partition": "pNAME"`} {
			users = append(users, `{"cluster": "lab", `+strings.ReplaceAll(user, "NAME", name)+`}`)
		}
	}
	path := "/slurmdb/" + newest[c.m.release]
	accounts := make([]string, 0, len(names))
	var people []string
	for _, name := range names {
		accounts = append(accounts, fmt.Sprintf(`{"name": "x%s", "description": "d", "organization": "o"}`, name))
		people = append(people, fmt.Sprintf(`{"name": "u%s"}`, name), fmt.Sprintf(`{"name": "v%s"}`, name))
	}
	c.mustPost(path+"/accounts/", `{"accounts": [`+strings.Join(accounts, ", ")+`]}`)
	c.mustPost(path+"/users/", `{"users": [`+strings.Join(people, ", ")+`]}`)
	c.mustPost(path+"/associations/", `{"associations": [`+strings.Join(below, ", ")+`]}`)
	c.mustPost(path+"/associations/", `{"associations": [`+strings.Join(users, ", ")+`]}`)
}

// makeThreeJobs submits three held jobs for each name, of different users,
// accounts and partitions.
func makeThreeJobs(c *changeForms, names []string) {
	c.t.Helper()
	for _, name := range names {
		for _, job := range []string{`"partition": "sets"`, `"partition": "debug", "user_id": "alice", "account": "physics", "qos": "quick", "wckey": "w"`, `"partition": "debug", "user_id": "bob", "account": "optics", "qos": "normal"`} {
			body := strings.ReplaceAll(`{"script": "#!/bin/sh\ntrue\n", "job": {"name": "NAME", "hold": true, "current_working_directory": "/tmp", "standard_output": "/dev/null", "environment": ["A=1"], `+job+`}}`, "NAME", name)
			a, err := sendRequest(c.clients[1], "POST", "/slurm/"+newest[c.m.release]+"/job/submit", body, "X-SLURM-USER-TOKEN: "+c.token)
			must(c.t, err)
			c.number(name, numberIn(c.t, a.body))
		}
	}
}

// query returns the query string for cases. It returns false if a value can't
// be in a query.
func query(cases []variant.Case) (string, bool) {
	values := url.Values{}
	for _, c := range cases {
		var v any
		if json.Unmarshal([]byte(c.Value), &v) != nil {
			return "", false
		}
		switch v := v.(type) {
		case string:
			values.Add(c.Field, v)
		case float64, bool:
			values.Add(c.Field, c.Value)
		case []any:
			for _, e := range v {
				text, ok := e.(string)
				if !ok {
					return "", false
				}
				values.Add(c.Field, text)
			}
			if len(v) < 2 {
				return "", false
			}
		default:
			return "", false
		}
	}
	return values.Encode(), true
}

var conditionHints = []variant.Hint{
	hint(`^(account|parent_account)$`, `"nosuchaccount"`, `"NAME"`, `"xNAME"`), hint(`^user$`, `"nosuchuser"`, `"uNAME"`, `"vNAME"`), hint(`^partition$`, `"nosuchpartition"`, `"pNAME"`, `"qNAME"`),
	hint(`qos$`, `"nosuchqos"`, `"normal"`, `"1"`),
}

// deleteTargets are the operations that remove objects.
var deleteTargets = []target{
	{method: "DELETE", path: "/slurmdb/associations/", query: "account=NAME", shows: showsAssociations, hints: conditionHints, combinations: associationConditions, matches: matchingAssociations, situations: []situation{{name: "tree", make: makeTrees}}},
	{method: "DELETE", path: "/slurmdb/association/", query: "account=xNAME&user=vNAME", shows: showsAssociations, hints: conditionHints, combinations: associationConditions, matches: matchingAssociations, situations: []situation{{name: "tree", make: makeTrees}}},
	{method: "DELETE", path: "/slurmdb/account/{account_name}", request: "/slurmdb/account/VALUE", shows: showsAccounts, combinations: names("NAME"), situations: []situation{{name: "tree", make: makeTrees}}},
	{method: "DELETE", path: "/slurmdb/user/{name}", request: "/slurmdb/user/VALUE", shows: showsUsers, combinations: names("uNAME"), situations: []situation{{name: "tree", make: makeTrees}}},
	{method: "DELETE", path: "/slurmdb/qos/{qos}", request: "/slurmdb/qos/VALUE", shows: []show{showsQOS}, combinations: names("NAME"), situations: []situation{{name: "QOS", make: post("/slurmdb/qos/", "qos", `{"name": "NAME"}`)}}},
	{method: "DELETE", path: "/slurmdb/wckey/{id}", request: "/slurmdb/wckey/VALUE", shows: showsUsers, combinations: names("kNAME"), situations: []situation{{name: "key", make: inOrder(makeUsers, post("/slurmdb/wckeys/", "wckeys", `{"name": "kNAME", "cluster": "lab", "user": "NAME"}`))}}},
	{method: "DELETE", path: "/slurm/node/{node_name}", request: "/slurm/node/VALUE", shows: showsNodes, combinations: names("NAME"), situations: []situation{{name: "node", make: makeNodes}}},
	{method: "DELETE", path: "/slurm/partition/{partition_name}", request: "/slurm/partition/VALUE", shows: showsPartitions, combinations: names("NAME"), situations: []situation{{name: "partition", make: scontrol("create PartitionName=NAME Nodes=n01")}}},
	{method: "DELETE", path: "/slurm/reservation/{reservation_name}", request: "/slurm/reservation/VALUE", shows: showsReservations, combinations: names("NAME"), situations: []situation{{name: "reservation", make: makeReservations}}},
	{method: "DELETE", path: "/slurm/jobs/", base: `{"job_name": "NAME"}`, shows: showsJobs, hints: killHints, situations: []situation{{name: "three jobs", make: makeThreeJobs}, {name: "three jobs by number", base: `{"jobs": ["OWNJOB"]}`, make: makeThreeJobs}}},
	{method: "DELETE", path: "/slurm/job/{job_id}", request: "/slurm/job/OWNJOB", query: "", shows: showsJobs, hints: killHints, byQuery: true, situations: []situation{{name: "three jobs", make: makeThreeJobs}}},
}

var killHints = []variant.Hint{
	hint(`^jobs$`, `"4000000"`, `"OWNJOB"`), hint(`^signal$`, `"NOSUCHSIGNAL"`, `"TERM"`, `"SIGKILL"`), hint(`^user_(id|name)$`, `"nosuchuser"`, `"alice"`, `"20002"`), hint(`^(account|partition|qos|wckey|reservation)$`, `"nosuch"`, `"physics"`, `"debug"`),
	hint(`^nodes$`, `"nosuchnode"`, `"n05"`), hint(`^job_name$`, `"nosuchjob"`, `"NAME"`),
}

// names returns the function combinations of a target whose request names one
// object in its path.
func names(name string) func() [][]variant.Case {
	return func() (list [][]variant.Case) {
		for _, c := range condition("name", "known", name, "unknown", "nosuch"+name, "upper case", strings.ToUpper(strings.Replace(name, "NAME", "", 1))+"NAME", "known and unknown", name+",nosuch"+name, "with blanks", " "+name, "quotes", name+"'", "percent", name+"%") {
			list = append(list, []variant.Case{c})
		}
		return list
	}
}
