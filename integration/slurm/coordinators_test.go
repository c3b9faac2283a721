package slurm

import (
	"net/http"
	"strings"
	"testing"
)

// TestCoordinators makes a user the coordinator of several accounts in one
// request, and then of some of them. The daemons must use the last list, and
// not only the database.
func TestCoordinators(t *testing.T) {
	m := freshCluster(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	token, err := m.createToken("root")
	must(t, err)
	post := func(t *testing.T, path, body string) {
		t.Helper()
		a, err := sendRequest(m.client(gatewaySocket), "POST", "/slurmdb/v0.0.42/"+path, body, "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		if a.status != http.StatusOK {
			t.Fatalf("status %d: %s", a.status, remarks(a.body))
		}
	}
	post(t, "users", `{"users": [{"name": "una"}, {"name": "vin"}]}`)
	post(t, "associations", `{"associations": [{"account": "root", "cluster": "lab", "user": "una"}, {"account": "root", "cluster": "lab", "user": "vin"}]}`)
	for _, tt := range []struct{ name, accounts, want string }{
		{"a new coordinator of new accounts", `a:una b:una c:una`, "a|una b|una c|una"},
		{"another one, too", `a:una,vin b:una c:una,vin`, "a|una,vin b|una c|una,vin"},
		{"one of two is removed from two accounts", `a:vin b: c:una,vin`, "a|vin b| c|una,vin"},
		{"one is added and removed", `a:una b:vin c:vin`, "a|una b|vin c|vin"},
		{"none", `a: b: c:`, "a| b| c|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var accounts []string
			for _, account := range strings.Fields(tt.accounts) {
				name, users, _ := strings.Cut(account, ":")
				var coordinators []string
				for _, user := range strings.FieldsFunc(users, func(r rune) bool { return r == ',' }) {
					coordinators = append(coordinators, `{"name": "`+user+`"}`)
				}
				accounts = append(accounts, `{"name": "`+name+`", "description": "d", "organization": "o", "coordinators": [`+strings.Join(coordinators, ", ")+`]}`)
			}
			post(t, "accounts", `{"accounts": [`+strings.Join(accounts, ", ")+`]}`)
			list := strings.Fields(m.run(t, "root", strings.Fields("sacctmgr -nP show account a,b,c withcoord format=account,coordinators")...))
			if got := strings.Join(list, " "); got != tt.want {
				t.Errorf("coordinators %q, want %q", got, tt.want)
			}
		})
	}
}
