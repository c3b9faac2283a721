package handlers

import (
	"strings"
	"testing"
)

// TestRecordTags checks that the entity tag of a record protects it: a change
// with the tag is made only while the record is the same.
func TestRecordTags(t *testing.T) {
	for _, tt := range []struct{ get, path, body string }{
		{"account/lab", "accounts/", `{"accounts": [{"name": "lab", "description": "new", "organization": "uni"}]}`},
		{"user/alice", "users/", `{"users": [{"name": "alice", "administrator_level": ["None"]}]}`},
		{"qos/fast", "qos/", `{"qos": [{"name": "fast", "description": "new"}]}`},
		{"associations/?id=3", "associations/", `{"associations": [{"account": "lab", "cluster": "demo", "user": "", "shares_raw": 5}]}`},
		{"associations/?id=3&cluster=demo", "associations/", `{"associations": [{"id": 3, "user": "", "shares_raw": 5}]}`},
	} {
		t.Run(tt.get, func(t *testing.T) {
			const base = "/scheddb/v0.0.45/"
			tag := serve(t, config(demo()), request("GET", base+tt.get, "")).Header().Get("ETag")
			if tag == "" {
				t.Fatal("no tag")
			}
			post := func(f *fake, condition string) int {
				r := request("POST", base+tt.path, tt.body)
				r.Header.Set("If-Match", condition)
				return serve(t, config(f), r).Code
			}
			for condition, want := range map[string]int{tag: 200, `"x", ` + tag: 200, strings.TrimPrefix(tag, "W/"): 200, `"x"`: 412, `W/"x"`: 412, "x": 412, "*": 200} {
				f := demo()
				if code := post(f, condition); code != want || len(f.recorded.changes) > 0 != (want == 200) {
					t.Errorf("If-Match: %s: status %d, want %d; %d changes", condition, code, want, len(f.recorded.changes))
				}
			}
			f := demo()
			f.recorded.accounts[0].Description = "other"
			f.recorded.users[0].AdminLevel = 3
			f.recorded.qos[1].Description = "other"
			f.recorded.associations[0].Shares = 77
			if code := post(f, tag); code != 412 || len(f.recorded.changes) > 0 {
				t.Errorf("a record that has changed: status %d, %d changes", code, len(f.recorded.changes))
			}
			for _, other := range []string{"//scheddb//v0.0.45/", "/./scheddb/v0.0.45/./", "/%73cheddb/v0.0.45/"} { // the same path
				r := request("POST", base+tt.path, tt.body)
				r.URL.RawPath, r.URL.Path = other+tt.path, strings.ReplaceAll(other, "%73", "s")+tt.path
				r.Header.Set("If-Match", tag)
				if code := serve(t, config(demo()), r).Code; code != 200 {
					t.Errorf("%s: status %d", other, code)
				}
			}
			two := request("POST", base+tt.path, strings.Replace(tt.body, "[{", "[{}, {", 1))
			two.Header.Set("If-Match", tag)
			if code := serve(t, config(demo()), two).Code; code == 200 {
				t.Errorf("several records: status %d", code)
			}
		})
	}
}
