package plan

import (
	"strings"
	"testing"

	"schedrestd/internal/errs"
)

// TestBecomeUserIsRefused checks that become_user is refused if the kernel does
// not identify every client.
func TestBecomeUserIsRefused(t *testing.T) {
	local := nameList{origin: "-a", value: "local"}
	for _, tt := range []struct {
		name       string
		options    options
		mode       mode
		want, hint string
	}{
		{"tokens", options{listen: []string{"unix:/s"}}, listening, "rest_auth/jwt", "-a rest_auth/local"},
		{"-u", options{auth: local, user: "nobody", listen: []string{"unix:/s"}}, listening, "not as -u or -g", "leave out"},
		{"-g", options{auth: local, group: "nogroup", listen: []string{"unix:/s"}}, listening, "not as -u or -g", "leave out"},
		{"TCP", options{auth: local, listen: []string{"unix:/s", "127.0.0.1:0"}}, listening, "cannot listen on 127.0.0.1:0", "unix:"},
		{"as it should be", options{auth: local, listen: []string{"unix:/s"}}, listening, "", ""},
		{"an inetd run with -u", options{auth: local, user: "nobody"}, inetd, "", ""},
	} {
		tt.options.start.Root = true
		err := tt.options.checkBecomeUser(tt.mode)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) || !strings.Contains(errs.HintOf(err), tt.hint) {
			t.Errorf("%s: %v, hint %q", tt.name, err, errs.HintOf(err))
		}
	}
	if err := (&options{auth: local}).checkBecomeUser(listening); err == nil || !strings.Contains(err.Error(), "only root") {
		t.Errorf("without root: %v", err)
	}
}
