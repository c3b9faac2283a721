package conf

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestManual checks that sched.conf(5) has an entry for each key that has an
// effect, and no entry for other keys. It also checks that the page lists the
// supported parameters.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../docs/man/sched.conf.5")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	got, parameters := map[string]bool{}, map[string]bool{}
	for _, entry := range regexp.MustCompile(`(?m)^\.It (Cm .*)$`).FindAllStringSubmatch(page, -1) {
		for _, m := range regexp.MustCompile(`Cm (\w+)`).FindAllStringSubmatch(entry[1], -1) {
			if m[1] == strings.ToLower(m[1]) {
				parameters[m[1]] = true
			} else {
				got[m[1]] = true
			}
		}
	}
	want := map[string]bool{"Include": true, "NodeName": true, "PartitionName": true}
	for _, k := range clusterGrammar.keys {
		want[k.name] = true
	}
	for _, k := range dbdGrammar.keys {
		want[k.name] = true
		if !strings.Contains(page, k.name) {
			t.Errorf("the page does not contain %s", k.name)
		}
	}
	for key, lines := range clusterGrammar.lines {
		if lines != nil && !strings.Contains(fold(page), "\n.it cm "+key+"\n") {
			t.Errorf("%s has no entry", key)
		}
	}
	// Some keys of the grammar are names of parameters, in lower case. They
	// detect a parameter that a space separates from the rest of its list. The
	// page lists them as parameters, not as keys.
	wantParameters := map[string]bool{"disable_token_creation": true, "use_jwt_client_ids": true, "use_jwt_client_ids_only": true}
	for name := range want {
		if name == strings.ToLower(name) {
			delete(want, name)
			wantParameters[name] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-known +on the page):\n%s", diff)
	}
	_, err = (&Cluster{TLS: map[string]string{"restd_": ""}}).RestdTLS()
	for _, name := range regexp.MustCompile(`restd_\w+`).FindAllString(err.Error(), -1) {
		wantParameters[name] = true
	}
	ofDaemons := map[string]bool{}
	for _, name := range []string{"ca_cert_file", "ctld_cert_file", "ctld_cert_key_file"} {
		c := &Cluster{TLS: TLSParameters{name: "not absolute"}}
		_, caErr := c.ca()
		if _, err := c.Certificate(); err == nil && caErr == nil {
			t.Errorf("%s is no parameter", name)
		}
		ofDaemons[name], wantParameters[name] = true, true
	}
	if diff := cmp.Diff(wantParameters, parameters); diff != "" {
		t.Errorf("parameters (-known +on the page):\n%s", diff)
	}
	for name := range parameters {
		var n notes
		if new(Auth).setParameter(name, "", false, &n); !strings.HasPrefix(name, "restd_") && !ofDaemons[name] && strings.Contains(strings.Join(n.texts, ""), "unknown parameter") {
			t.Errorf("%s is no parameter", name)
		}
	}
}
