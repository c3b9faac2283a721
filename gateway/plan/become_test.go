package plan

import (
	"strings"
	"testing"

	"schedrestd/conf"
	"schedrestd/gateway/plan/option"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
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
		{"tokens", option.Options{Listen: []string{"unix:/s"}}, listening, "needs -a rest_auth/local", "-a rest_auth/local"},
		{"-u without -a", option.Options{User: "nobody", Listen: []string{"unix:/s"}}, listening, "not as -u or -g", "leave out"},
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

// TestOutputIsRefused checks that output is read only if the kernel or the keeper
// names the user, or if only this process's user is served.
func TestOutputIsRefused(t *testing.T) {
	for _, tt := range []struct {
		root, become, tokens, jwt bool
		key, set                  string
		want                      string
	}{
		{root: true, want: "needs become_user"},
		{root: true, become: true},
		{},
		{tokens: true, jwt: true, key: "/k", want: "needs a gateway that root starts"},
		{root: true, become: true, tokens: true, jwt: true, key: "/k", want: "needs a gateway that root starts"},
		{root: true, tokens: true, key: "/k", want: "needs rest_auth/jwt and jwt_key="},
		{root: true, tokens: true, jwt: true, want: "needs rest_auth/jwt and jwt_key= or jwks="},
		{root: true, tokens: true, jwt: true, set: "/j"},
		{root: true, tokens: true, jwt: true, key: "/k"},
	} {
		o := options{start: ipc.ConfigSetup{Root: tt.root}}
		o.Run.Switches.Output, o.Run.Switches.BecomeUser = true, tt.become
		s := work.Setup{TokenOutput: tt.tokens}
		s.JWT = tt.jwt
		err := o.checkOutput(&conf.Cluster{Auth: conf.Auth{JWTKey: tt.key, JWKS: tt.set}}, &s)
		if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || errs.HintOf(err) == "") {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
