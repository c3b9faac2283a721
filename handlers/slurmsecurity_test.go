package handlers

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"schedrestd/model"
)

// TestRefusedForTheDaemon checks that requests with values that older releases
// of slurmdbd misread are refused, and that no request to the daemon contains
// such a value. docs/DIFFERENCES.md has a row for each class.
func TestRefusedForTheDaemon(t *testing.T) {
	const quote, number = "demo`; DROP", "1) OR (1"
	for _, tt := range []struct{ method, path, value string }{
		{"GET", "jobs?cluster=%s", quote},
		{"GET", "associations?cluster=%s", quote},
		{"GET", "wckeys?cluster=%s", quote},
		{"GET", "instances?cluster=%s", quote},
		{"GET", "cluster/demo?cluster=%s", quote},
		{"DELETE", "association?account=lab&cluster=%s", quote},
		{"POST", `clusters {"clusters": [{"name": %q}]}`, quote},
		{"POST", `config {"clusters": [{"name": %q}]}`, quote},
		{"GET", "jobs?association=%s", number},
		{"GET", "jobs?reservation_id=%s", number},
		{"GET", "jobs?qos=%s", number},
		{"GET", "jobs?users=%s", number},
		{"GET", "jobs?groups=%s", number},
		{"GET", "associations?id=%s", number},
		{"GET", "associations?qos=%s", number},
		{"GET", "associations?default_qos=%s", number},
		{"GET", "qos?id=%s", number},
		{"GET", "wckeys?id=%s", number},
		{"DELETE", "associations?account=lab&id=%s", number},
	} {
		f := demo()
		path, body, _ := strings.Cut(tt.path, " ")
		value := url.QueryEscape(tt.value)
		if body != "" {
			body = fmt.Sprintf(body, tt.value)
		} else {
			path = fmt.Sprintf(path, value)
		}
		w := serve(t, config(f), request(tt.method, "/slurmdb/v0.0.45/"+path, body))
		if sent := fmt.Sprintf("%q %q", f.recorded.filters, f.recorded.changes); strings.Contains(sent, tt.value) {
			t.Errorf("%s %s: the daemon receives %s", tt.method, tt.path, sent)
		}
		isName := strings.Contains(tt.path, "users=") || strings.Contains(tt.path, "groups=") // no user has this name, so the list is empty
		if (w.Code < 400 || w.Code >= 500) && !isName {
			t.Errorf("%s %s: status %d: %.300s", tt.method, tt.path, w.Code, w.Body)
		}
	}
}

// TestOperatorAndAdministrators checks that an operator can't make, change or
// remove an administrator. An administrator can, and an operator can still
// change other users.
func TestOperatorAndAdministrators(t *testing.T) {
	const none, operator, administrator = 1, 2, 3
	users := func(level string) string {
		return `{"users": [{"name": "bob", "administrator_level": ["` + level + `"]}]}`
	}
	for _, tt := range []struct {
		name               string
		method, path, body string
		client, bob        uint16
		refused            bool
	}{
		{"makes one", "POST", "users", users("Administrator"), operator, none, true},
		{"changes one", "POST", "users", users("None"), operator, administrator, true},
		{"removes one", "DELETE", "user/bob", "", operator, administrator, true},
		{"makes one with an association", "POST", "users_association",
			`{"association_condition": {"accounts": ["lab"], "users": ["bob"], "clusters": ["demo"]}, "user": {"adminlevel": ["Administrator"]}}`, operator, none, true},
		{"makes one with config", "POST", "config", users("Administrator"), operator, none, true},
		{"changes one with config", "POST", "config", users("None"), operator, administrator, true},
		{"makes an operator", "POST", "users", users("Operator"), operator, none, false},
		{"removes a user", "DELETE", "user/bob", "", operator, none, false},
		{"an administrator makes one", "POST", "users", users("Administrator"), administrator, none, false},
		{"an administrator removes one", "DELETE", "user/bob", "", administrator, administrator, false},
	} {
		f := demo()
		f.recorded.users = []model.User{{Name: "alice", AdminLevel: tt.client}, {Name: "bob", AdminLevel: tt.bob}}
		f.recorded.refuse = func(any) ([]string, error) { return []string{"bob"}, nil }
		w := serve(t, config(f), request(tt.method, "/slurmdb/v0.0.45/"+tt.path, tt.body))
		if (w.Code == http.StatusForbidden) != tt.refused || (len(f.recorded.changes) == 0) != tt.refused {
			t.Errorf("%s: status %d, changes %+v: %.300s", tt.name, w.Code, f.recorded.changes, w.Body)
		}
	}
}

// TestSpankNames checks that a variable for SPANK plugins whose name would
// overflow a buffer of slurmstepd is refused, wherever a job has variables, and
// that long values and other long names are not.
func TestSpankNames(t *testing.T) {
	name := func(prefix string, n int) string { return prefix + strings.Repeat("x", n-len(prefix)) }
	const option, prolog = "_SLURM_SPANK_OPTION_", "SPANK__SLURM_SPANK_OPTION_"
	for _, tt := range []struct {
		name, field, variable string
		refused               bool
	}{
		{"an option", "environment", name(option, maxSpankName+1) + "=v", true},
		{"an option of the buffer's size", "environment", name(option, 1024) + "=v", true},
		{"an option without a value", "environment", name(option, 9000), true},
		{"an option of a prolog", "environment", name(prolog, maxSpankName+1) + "=v", true},
		{"a variable of a prolog", "environment", name("SPANK_", 2000) + "=v", true},
		{"a prolog's environment", "spank_environment", name(option, maxSpankName+1) + "=v", true},
		{"any name in a prolog's environment", "spank_environment", name("A", 2000) + "=v", true},
		{"the longest option", "environment", name(option, maxSpankName) + "=v", false},
		{"a long value", "environment", option + "pyxis_container_mounts=" + strings.Repeat("/a:/b,", 5000), false},
		{"a long value with an equals sign", "spank_environment", option + "pyxis_container_mounts=" + strings.Repeat("/a=/b,", 5000), false},
		{"another long name", "environment", name("A", 2000) + "=v", false},
		{"a variable of a step", "environment", name("SLURM_SPANK_", 2000) + "=v", false},
	} {
		field := fmt.Sprintf("%q: [\"A=b\", %q]", tt.field, tt.variable)
		if tt.field != "environment" {
			field += `, "environment": ["A=b"]`
		}
		job := `{"name": "a", "current_working_directory": "/", ` + field + `}`
		for _, r := range []struct{ path, body string }{
			{"job/submit", `{"script": "#!/bin/sh", "job": ` + job + `}`},
			{"job/submit", `{"script": "#!/bin/sh", "jobs": [{"environment": ["A=b"], "current_working_directory": "/"}, ` + job + `]}`},
			{"job/allocate", `{"job": ` + job + `}`},
			{"job/allocate", `{"hetjob": [` + job + `, ` + job + `]}`},
			{"job/17", job}, // slurmctld shows a change to the site's policy
		} {
			f := demo()
			w := serve(t, config(f), request("POST", "/slurm/v0.0.45/"+r.path, r.body))
			sent := ""
			for _, d := range f.submitted {
				sent += strings.Join(d.Environment, " ") + strings.Join(d.SpankEnvironment, " ")
			}
			if !tt.refused && w.Code == http.StatusOK && strings.Contains(sent, tt.variable) {
				continue
			}
			if !tt.refused || w.Code != http.StatusUnprocessableEntity || strings.Contains(sent, tt.variable) || !strings.Contains(w.Body.String(), tt.field) {
				t.Errorf("%s, %s: status %d: %.300s", tt.name, r.path, w.Code, w.Body)
			}
		}
	}
	if len(name("SPANK_", 6))+maxSpankName >= 1024 {
		t.Error("the buffer has no room for the longest name with its prefix")
	}
}

// TestCoordinatorMakesUsers checks the level with which users are created.
// slurmdbd refuses any level from a coordinator, even none.
func TestCoordinatorMakesUsers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		users []model.User
		want  uint16
	}{
		{"a coordinator", []model.User{{Name: "alice", AdminLevel: adminNone}}, 0},
		{"an operator", []model.User{{Name: "alice", AdminLevel: operator}}, adminNone},
		{"an administrator", []model.User{{Name: "alice", AdminLevel: administrator}}, adminNone},
		{"a user without a record, such as SlurmUser", nil, adminNone},
	} {
		f := demo()
		f.recorded.users = tt.users
		w := serve(t, config(f), request("POST", "/slurmdb/v0.0.45/users", `{"users": [{"name": "new"}]}`))
		if w.Code != http.StatusOK || len(f.recorded.changes) != 1 {
			t.Fatalf("%s: status %d, changes %+v: %.300s", tt.name, w.Code, f.recorded.changes, w.Body)
		}
		if got := f.recorded.changes[0].(model.Add[model.User]).Records[0].AdminLevel; got != tt.want {
			t.Errorf("%s: level %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestHiddenRecords checks that a coordinator can't overwrite a record that
// PrivateData hides. slurmdbd itself would overwrite the description of an
// account, and releases before September 2026 would take away the level of a
// user.
func TestHiddenRecords(t *testing.T) {
	for _, tt := range []struct {
		level  uint16
		status int
	}{{adminNone, http.StatusForbidden}, {operator, http.StatusUnprocessableEntity}} {
		for _, r := range []struct{ path, body string }{
			{"accounts", `{"accounts": [{"name": "hidden", "description": "d", "organization": "o"}]}`},
			{"users", `{"users": [{"name": "hidden"}]}`},
		} {
			f := demo()
			f.recorded.users = []model.User{{Name: "alice", AdminLevel: tt.level}}
			f.recorded.refuse = func(any) ([]string, error) { return nil, nil } // the daemon makes the change, and does not show it
			w := serve(t, config(f), request("POST", "/slurmdb/v0.0.45/"+r.path, r.body))
			if w.Code != tt.status || len(f.recorded.committed) != 1 || f.recorded.committed[0] {
				t.Errorf("%s, level %d: status %d, want %d, committed %v: %.300s", r.path, tt.level, w.Code, tt.status, f.recorded.committed, w.Body)
			}
		}
	}
}
