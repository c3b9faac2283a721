package slurm

import (
	"regexp"
	"strings"
)

// A nameDifference is a known difference.
type nameDifference struct {
	releases, uses, spellings, difference string // regular expressions, except releases
	why                                   string
}

func (d nameDifference) covers(tr *nameTrial, difference string) bool {
	match := func(pattern, text string) bool { return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(text) }
	return strings.Contains(d.releases, cluster.release) && match(d.uses, tr.use.method+" "+tr.use.name) && match(d.spellings, tr.spelling) && match(d.difference, difference)
}

// The spellings that slurmdbd's database takes for the same name, and the others.
const (
	sameNames = `the same|(lower|upper|mixed) case|(no|combining|other) accents|a Kelvin sign|a (long|sharp) s|a dott?.*|full width|invisible|a trailing blank`
	anyName   = `.*`
	refusal   = `theirs accepted, ours refused|effect|numbers .*`
)

var nameDifferences = []nameDifference{
	{"24.11 26.05", `.*`, anyName, `theirs (crash|ends a daemon), .*`, "slurmrestd ends"},
	{"24.11 26.05", `.*`, `a plus sign|empty|a slash`, `theirs refused, ours accepted`, "slurmrestd can't read the path, or refuses an empty text"},
	{"24.11 26.05", `POST .*`, `a comma|a trailing tab|longer than a column`, refusal, "no record gets a name that no command can show or name, or the beginning of a name"},
	{"24.11 26.05", `GET .* by .*`, `empty`, `found`, "an empty filter selects everything"},
	{"24.11 26.05", `POST .*`, `empty`, refusal, "slurmrestd makes records without a name"},
	{"24.11 26.05", `POST (preempted|added|removed|qos of).*`, `a (plus|minus) sign`, `effect|theirs refused, ours accepted`, "slurmrestd of 24.11 knows no signs in front of a QOS"},
	{"24.11 26.05", `.* by .*`, `a comma|a trailing tab`, refusal + `|found`, "a filter has no control characters, and a comma is between names"},
	{"24.11 26.05", `(GET|DELETE) (account|account without users|user|wckey|qos)`, `a comma`, refusal, "no record has a name with a comma, and the path of a record that can't exist is 404"},
	{"24.11 26.05", `.*cluster.*`, anyName, refusal + `|found`, "a name of a cluster has only characters that are safe in the names of tables; slurmdbd then finds no records in another spelling than the cluster's"},
	{"24.11 26.05", `POST config`, anyName, `theirs refused, ours accepted|effect|numbers .*`, "slurmrestd wants a cluster, and commits nothing"},
	{"24.11 26.05", `POST (wckey|user|account|qos|cluster|coordinator|partition|parent|default|old|preempted|added|removed).*`, sameNames, `effect|theirs (refused|accepted), ours (refused|accepted)|numbers .*`, "slurmrestd stores the other spelling, or does not find the record"},
	{"24.11 26.05", `POST (account of|coordinator|parent|default|partition|user of|qos of|preempted|added|removed|type|name of).*`, anyName, refusal, "slurmrestd reports success for a record that does not exist"},
	{"24.11 26.05", `POST .*`, anyName, `numbers .*`, "slurmrestd has one number for most failures"},
	{"24.11 26.05", `GET jobs by qos`, anyName, `found|theirs refused, ours accepted|numbers .*`, "slurmrestd finds no QOS in another spelling"},
	{"24.11 26.05", `GET jobs by user`, anyName, `theirs refused, ours accepted|numbers .*`, "a user without an account in the operating system has no jobs"},
	{"24.11 26.05", `GET (partition|reservation|node)`, `a long s|a Kelvin sign`, `found`, "slurmrestd ignores the case of ASCII letters only"},
	{"24.11 26.05", `GET (partition|reservation|node)`, anyName, `theirs refused, ours accepted|numbers .*`, "an unknown name is an empty list with an error, as clients expect"},
}
