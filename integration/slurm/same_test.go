package slurm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// individual matches the fields that may differ between two records that were
// made in the same way. These fields contain numbers, times, or the places that
// the scheduler chose.
var individual = regexp.MustCompile(`(?i)(^|_|\.|\[\])(id|.*_?time|.*_id|.*usage.*|priority|fair.*|job_resources|batch_host|nodes|cron|.*hostname|comment_set|lineage|command|pid|.*start.*|.*end.*|last_sched_evaluation|het_job_id_set|state_reason|address)(\.|\[|$)`)

// compareMade lists records with slurmrestd. The records that were made through
// our gateway must have the same fields and values as those that were made
// through Slurm's gateway. Only the names of records and the fields that match
// the pattern individual may differ.
func (s *sides) compareMade(t *testing.T, version, prefix string, lists ...string) {
	t.Helper()
	count := 0
	for _, list := range lists {
		path := "/" + prefix + version + "/" + list
		a, err := sendRequest(s.m.client(referenceSocket), "GET", path, "", "X-SLURM-USER-TOKEN: "+s.token)
		must(t, err)
		var body map[string]any
		if err := json.Unmarshal(nonJSONNumber.ReplaceAll(a.body, []byte(`: "$1"`)), &body); err != nil {
			t.Fatalf("%s: status %d, %v: %.300s", path, a.status, err, a.body)
		}
		var byGateway [2][]string
		for _, records := range body {
			records, ok := records.([]any)
			if !ok {
				continue
			}
			for _, record := range records {
				text, err := json.Marshal(record)
				must(t, err)
				for i := range byGateway {
					if side := fmt.Sprint("of", i); strings.Contains(string(text), side) {
						byGateway[i] = append(byGateway[i], strings.Join(leaves("", record, side, s.names[i]), "\n"))
					}
				}
			}
		}
		for i := range byGateway {
			slices.Sort(byGateway[i])
		}
		count += len(byGateway[1])
		if len(byGateway[0]) != len(byGateway[1]) {
			t.Errorf("%s: %d records were made through theirs, %d through ours", path, len(byGateway[0]), len(byGateway[1]))
			continue
		}
		for n := range byGateway[0] {
			if byGateway[0][n] != byGateway[1][n] {
				t.Errorf("%s:\ntheirs:\n%s\nours:\n%s", path, linesNotIn(byGateway[0][n], byGateway[1][n]), linesNotIn(byGateway[1][n], byGateway[0][n]))
			}
		}
	}
	t.Logf("%d records compared in %d lists", count, len(lists))
	if count == 0 {
		t.Error("no records are compared")
	}
}

// leaves returns the fields of a record with their values, as lines of text. It
// omits the fields that match the pattern individual. It replaces side with
// NAME. The list words contains further texts, each followed by its
// replacement.
func leaves(at string, value any, side string, words []string) (list []string) {
	switch value := value.(type) {
	case map[string]any:
		for name, value := range value {
			list = append(list, leaves(at+"."+name, value, side, words)...)
		}
		slices.Sort(list)
	case []any:
		for _, value := range value {
			list = append(list, leaves(at+"[]", value, side, words)...)
		}
	default:
		if !individual.MatchString(at) {
			line := fmt.Sprintf("%s = %v", strings.TrimPrefix(at, "."), value)
			list = append(list, strings.NewReplacer(append([]string{side, "NAME"}, words...)...).Replace(line))
		}
	}
	return list
}
