package jobs

import (
	"encoding/json"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestAccountingSentBack sends what answers show of the records of the bundled
// accounting daemon back. What associations inherit must not become their own.
func TestAccountingSentBack(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, func(l *harness.Lab) { l.Restd.Env = append(l.Restd.Env, "SCHEDRESTD_NAMES=both") })
	latest := "/scheddb/" + harness.Version + "/"
	for _, make := range []struct{ path, body string }{
		{"clusters", `{"clusters": [{"name": "west"}]}`},
		{"qos", `{"qos": [{"name": "q1", "priority": 3}, {"name": "q2", "preempt": {"list": ["q1"]}}]}`},
		{"accounts_association", `{"association_condition": {"accounts": ["y1"]}, "account": {"description": "d", "organization": "o"}}`},
		{"users_association", `{"association_condition": {"users": ["yu1", "yu2"], "accounts": ["y1"]}, "user": {}}`},
		{"associations", `{"associations": [
			{"account": "y1", "cluster": "west", "user": "", "qos": ["normal", "q1"], "default": {"qos": "q1"}, "max": {"jobs": {"active": {"set": true, "number": 40}, "per": {"wall_clock": {"set": true, "number": 60}}}, "tres": {"per": {"job": [{"type": "cpu", "count": 5}]}}}},
			{"account": "y1", "cluster": "west", "user": "yu2", "qos": ["q2"], "default": {"qos": "q2"}, "max": {"jobs": {"active": {"set": true, "number": 3}}}}]}`},
	} {
		l.Request("POST", latest+make.path, make.body).Want(t, 200)
	}
	lists := []string{"accounts", "associations", "clusters", "config", "qos", "users", "wckeys"}
	stored := func() string {
		var records []string
		for _, list := range []string{
			"associations?Include%20the%20raw%20QOS%20or%20delta_qos=true&Exclude%20limits%20from%20parents=true",
			"config",
		} {
			shown := l.Request("GET", latest+list, "").Want(t, 200)
			var answer map[string]json.RawMessage
			harness.Must(t, json.Unmarshal([]byte(shown.Text), &answer))
			delete(answer, "meta") // it names the connection
			text, err := json.Marshal(answer)
			harness.Must(t, err)
			records = append(records, string(text))
		}
		return strings.Join(records, "\n")
	}
	before := stored()
	for _, v := range harness.APIVersions {
		for _, segment := range []string{"scheddb", "slurmdb"} {
			for _, list := range lists {
				prefix := "/" + segment + "/" + v + "/"
				shown := l.Request("GET", prefix+list, "")
				if shown.Status == 501 {
					continue // the bundled daemon has no such records
				}
				answer := l.Request("POST", prefix+list, shown.Want(t, 200).Text)
				if empty := answer.Status == 422 && list == "wckeys"; !empty {
					answer.Want(t, 200)
				}
				if after := stored(); after != before {
					t.Fatalf("%s%s changed\n%s\nto\n%s", prefix, list, before, after)
				}
			}
		}
	}
}
