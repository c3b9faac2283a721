package plan

import (
	"strings"
	"testing"

	"schedrestd/gateway/plan/option"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// TestBecomeUserIsRefused checks that become_user is refused if the kernel does
// not identify every client.
func TestBecomeUserIsRefused(t *testing.T) {
	local := option.NameList{Origin: "-a", Value: "local"}
	for _, tt := range []struct {
		name       string
		options    option.Options
		mode       mode
		want, hint string
	}{
		{"tokens", option.Options{Listen: []string{"unix:/s"}}, listening, "rest_auth/jwt", "-a rest_auth/local"},
		{"-u", option.Options{Auth: local, User: "nobody", Listen: []string{"unix:/s"}}, listening, "not as -u or -g", "leave out"},
		{"-g", option.Options{Auth: local, Group: "nogroup", Listen: []string{"unix:/s"}}, listening, "not as -u or -g", "leave out"},
		{"TCP", option.Options{Auth: local, Listen: []string{"unix:/s", "127.0.0.1:0"}}, listening, "cannot listen on 127.0.0.1:0", "unix:"},
		{"as it should be", option.Options{Auth: local, Listen: []string{"unix:/s"}}, listening, "", ""},
		{"an inetd run with -u", option.Options{Auth: local, User: "nobody"}, inetd, "", ""},
	} {
		o := options{Options: tt.options, start: ipc.ConfigSetup{Root: true}}
		err := o.checkBecomeUser(tt.mode)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) || !strings.Contains(errs.HintOf(err), tt.hint) {
			t.Errorf("%s: %v, hint %q", tt.name, err, errs.HintOf(err))
		}
	}
	if err := (&options{Options: option.Options{Auth: local}}).checkBecomeUser(listening); err == nil || !strings.Contains(err.Error(), "only root") {
		t.Errorf("without root: %v", err)
	}
}

// TestOutputIsRefused checks that output is read only if the kernel names the user,
// or if only this process's user is served.
func TestOutputIsRefused(t *testing.T) {
	for _, tt := range []struct {
		root, become bool
		want         string
	}{{root: true, want: "needs become_user"}, {root: true, become: true}, {}} {
		o := options{start: ipc.ConfigSetup{Root: tt.root}}
		o.Run.Switches.Output, o.Run.Switches.BecomeUser = true, tt.become
		err := o.checkOutput()
		if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || errs.HintOf(err) == "") {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
