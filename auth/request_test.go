package auth

import (
	"bufio"
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/internal/errs"
)

var (
	allOptions = Options{JWT: true, Local: true, UID: 1000, User: func() string { return "carol" }, Now: clock}
	tcp        = Peer{Network: "tcp", Addr: "192.0.2.1:1", UID: 1000, GID: 1000, Verified: true}
	unix       = Peer{Network: "unix", UID: 1000, GID: 1000, PID: 7, Verified: true}
)

// request returns a request with the given peer and header. It parses the
// header text as the server does, so repeated fields are preserved.
func request(t testing.TB, peer *Peer, header string) *http.Request {
	t.Helper()
	text := "GET / HTTP/1.1\r\nHost: x\r\n" + strings.ReplaceAll(header, "\n", "\r\n") + "\r\n\r\n"
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	if peer != nil {
		r = r.WithContext(WithPeer(context.Background(), *peer))
	}
	return r
}

func TestFromRequest(t *testing.T) {
	good := sign(goodHeader, goodClaims)
	claims, err := Inspect(good, allOptions)
	if err != nil {
		t.Fatal(err)
	}
	token := &Credential{Token: good, Claims: claims}
	last := sign(goodHeader, `{"iat":1699990000,"exp":1700000001,"sun":"alice"}`)
	lastClaims, err := Inspect(last, allOptions)
	if err != nil {
		t.Fatal(err)
	}
	expiring := &Credential{Token: last, Claims: lastClaims}
	acting := &Credential{Token: good, Claims: claims, ActAs: "bob"}
	self := &Credential{Local: true, UID: 1000, GID: 1000}
	T := "X-SCHED-USER-TOKEN: " + good
	N := "X-SCHED-USER-NAME: "
	jwt, local := allOptions, allOptions
	jwt.Local, local.JWT = false, false
	nameless := allOptions
	nameless.User = func() string { return "" }
	named := allOptions
	named.Privileged = func(user string, _ *uint32) bool { return user == claims.User || user == "toor" }

	tests := []struct {
		name   string
		opt    Options
		peer   *Peer
		header string
		want   *Credential // nil if the request is refused
		reason string
	}{
		{"token", allOptions, &tcp, T, token, ""},
		{"token in Slurm's spelling", allOptions, &tcp, "x-slurm-user-token: " + good, token, ""},
		{"Bearer", allOptions, &tcp, "Authorization: bearer  " + good, token, ""},
		{"token and name", allOptions, &tcp, T + "\n" + N + "bob", acting, ""},
		{"token and name in two spellings", allOptions, &tcp, T + "\nX-SLURM-USER-NAME: bob", acting, ""},
		{"blanks around a value", allOptions, &tcp, "X-SCHED-USER-TOKEN: \t " + good + " \t", token, ""},
		{"a password that a proxy passed on", allOptions, &tcp, T + "\nAuthorization: Basic YTpi", token, ""},
		{"token wins over local", allOptions, &unix, T, token, ""},
		{"local", allOptions, &unix, "", self, ""},
		{"local with the own name", allOptions, &unix, N + "carol", self, ""},
		{"harmless Connection", allOptions, &tcp, T + "\nConnection: keep-alive, X-Other", token, ""},

		{"a name where one is needed", named, &tcp, T + "\n" + N + "bob", acting, ""},
		{"no name where one is needed", named, &tcp, T, nil, "name another user to act as"},
		{"the own name where another is needed", named, &tcp, T + "\n" + N + claims.User, nil, "name another user to act as"},
		{"another privileged name", named, &tcp, T + "\n" + N + "toor", nil, "name another user to act as"},
		{"nothing", allOptions, &tcp, "", nil, "the connection is not local"},
		{"nothing, without local", jwt, &unix, "", nil, "no token"},
		{"name alone", allOptions, &tcp, N + "bob", nil, "the connection is not local"},
		{"token where only local is served", local, &unix, T, nil, "rest_auth/jwt is not enabled"},
		{"no peer known", allOptions, nil, "", nil, "the connection is not local"},

		{"token twice", allOptions, &tcp, T + "\n" + T, nil, "2 headers"},
		{"token in both spellings", allOptions, &tcp, T + "\nX-SLURM-USER-TOKEN: " + good, nil, "2 headers"},
		{"token and Bearer", allOptions, &tcp, T + "\nAuthorization: Bearer " + good, nil, "both a token header and a Bearer token"},
		{"two Bearers", allOptions, &tcp, "Authorization: Bearer " + good + "\nAuthorization: Bearer " + good, nil, "2 headers"},
		{"Bearer after a password", allOptions, &tcp, "Authorization: Basic YTpi\nAuthorization: Bearer " + good, nil, "2 headers"},
		{"two Bearers in one", allOptions, &tcp, "Authorization: Bearer " + good + ", Bearer " + good, nil, "token:"},
		{"name twice", allOptions, &tcp, T + "\n" + N + "bob\n" + N + "bob", nil, "2 headers"},
		{"names that differ", allOptions, &tcp, T + "\n" + N + "bob\nX-SLURM-USER-NAME: root", nil, "2 headers"},
		{"names in one", allOptions, &tcp, T + "\n" + N + "bob, root", nil, "not a user name"},
		{"empty token", allOptions, &unix, "X-SCHED-USER-TOKEN:", nil, "empty X-Sched-User-Token"},
		{"empty name", allOptions, &unix, T + "\nX-SCHED-USER-NAME: \t", nil, "empty X-Sched-User-Name"},
		{"empty Authorization", allOptions, &unix, "Authorization:", nil, "empty Authorization"},
		{"empty Bearer", allOptions, &unix, "Authorization: Bearer", nil, "empty Bearer"},
		{"Bearer without a blank", allOptions, &unix, "Authorization: Bearer,", nil, "token:"},
		{"Bearer and a tab", allOptions, &unix, "Authorization: Bearer\t" + good, nil, "token:"},
		{"name stripped by Connection", allOptions, &tcp, T + "\nConnection: close, x-sched-user-name", nil, "the Connection header lists X-Sched-User-Name"},
		{"Slurm's name stripped by Connection", allOptions, &unix, "Connection: X-SLURM-USER-NAME", nil, "the Connection header lists"},
		{"token stripped by Connection", allOptions, &unix, "Connection: keep-alive\nConnection: X-SCHED-USER-TOKEN", nil, "the Connection header lists"},
		{"name stripped by a quoted Connection", allOptions, &tcp, T + "\nConnection: \"x-sched-user-name\"", nil, "the Connection header lists X-Sched-User-Name"},
		{"name stripped after a semicolon", allOptions, &tcp, T + "\nConnection: close; X-Sched-User-Name", nil, "the Connection header lists"},
		{"name stripped by Proxy-Connection", allOptions, &tcp, T + "\nProxy-Connection: X-SCHED-USER-NAME", nil, "the Connection header lists"},
		{"name with underscores", allOptions, &tcp, T + "\nX_SCHED_USER_NAME: bob", nil, "X-Sched-User-Name is written with underscores"},
		{"name with an underscore beside a good one", allOptions, &tcp, T + "\n" + N + "bob\nx-slurm-user_name: root", nil, "written with underscores"},
		{"token with underscores", allOptions, &unix, "X_Slurm_User_Token: " + good, nil, "X-Slurm-User-Token is written with underscores"},
		{"another header with underscores", allOptions, &tcp, T + "\nX_Request_Id: 1", token, ""},
		{"a token in the place of the name", allOptions, &tcp, T + "\n" + N + good, nil, "not a user name"},
		{"Authorization stripped by Connection", allOptions, &unix, "Connection: ,authorization ,", nil, "the Connection header lists"},
		{"a token in the leeway after its end", allOptions, &tcp, "X-SCHED-USER-TOKEN: " + sign(goodHeader, `{"iat":1699990000,"exp":1700000000,"sun":"alice"}`), nil, "expired"},
		{"a token in its last second", allOptions, &tcp, "X-SCHED-USER-TOKEN: " + last, expiring, ""},
		{"garbage on a local connection", allOptions, &unix, "X-SCHED-USER-TOKEN: x", nil, "not three segments"},

		{"another user", allOptions, &Peer{Network: "unix", UID: 1001, GID: 1000, Verified: true}, "", nil, "the peer's uid is 1001"},
		{"root", allOptions, &Peer{Network: "unix", UID: 0, GID: 1000, Verified: true}, "", nil, "the peer's uid is 0"},
		{"root in its own group", allOptions, &Peer{Network: "unix"}, "", nil, "no token, and the peer's uid is 0, expected 1000"},
		{"not checked", allOptions, &Peer{Network: "unix", UID: 1000, GID: 1000}, "", nil, "belong to no user"},
		{"a pipe of ours", allOptions, &Peer{Network: "stdio", UID: 1000, GID: 1000, Verified: true}, "", self, ""},
		{"a pipe of another", allOptions, &Peer{Network: "stdio", UID: 1001, GID: 1000, Verified: true}, "", nil, "the peer's uid is 1001"},
		{"a file that others may open", allOptions, &Peer{Network: "stdio", UID: 1000, GID: 1000}, "", nil, "other users can open it"},
		{"a token in a pipe", allOptions, &Peer{Network: "stdio", UID: 1000, GID: 1000, Verified: true}, T, token, ""},
		{"local with another name", allOptions, &unix, N + "root", nil, "not the peer's own name"},
		{"local with a name where the own is not known", nameless, &unix, N + "carol", nil, "not the peer's own name"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := FromRequest(request(t, test.peer, test.header), test.opt)
			if test.want == nil {
				refused(t, err, test.reason, good)
				if got != (Credential{}) {
					t.Errorf("refused, but returned %#v", got)
				}
				return
			}
			if d := cmp.Diff(*test.want, got, cmpopts.IgnoreUnexported(Credential{})); d != "" || err != nil {
				t.Errorf("%v, -want +got\n%s", err, d)
			}
			var proof *proof // proof of the token; nil for other credentials
			if token := test.want.Token; token != "" {
				p, err := parse(token)
				must(t, err)
				proof = p.proof(hashOf(token))
			}
			if !reflect.DeepEqual(proof, got.proof) {
				t.Errorf("proof %+v, want %+v", got.proof, proof)
			}
		})
	}
}

func TestCredentialUser(t *testing.T) {
	for _, test := range []struct {
		c    Credential
		want string
	}{
		{Credential{Token: "t", Claims: Claims{User: "alice"}}, "alice"},
		{Credential{Token: "t", Claims: Claims{User: "alice"}, ActAs: "alice"}, "alice"},
		{Credential{Token: "t", Claims: Claims{User: "root"}, ActAs: "bob"}, "bob by root"},
		{Credential{Local: true, UID: 7}, "uid 7"},
	} {
		if got := test.c.User(); got != test.want {
			t.Errorf("%#v: got %q, want %q", test.c, got, test.want)
		}
	}
}

// FuzzFromRequest searches for a request header that makes the gateway serve a
// local client as another user.
func FuzzFromRequest(f *testing.F) {
	good := sign(goodHeader, goodClaims)
	f.Add("X-SCHED-USER-TOKEN: " + good + "\nConnection: X-SCHED-USER-NAME")
	f.Add("Authorization: Bearer " + good + "\nX-SLURM-USER-NAME: bob")
	f.Add("X-SCHED-USER-NAME: carol\nConnection: keep-alive")
	f.Fuzz(func(t *testing.T, header string) {
		text := "GET / HTTP/1.1\r\nHost: x\r\n" + header + "\r\n\r\n"
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil || r.Host != "x" { // a line that begins with a space continues that of Host
			return
		}
		c, err := FromRequest(r.WithContext(WithPeer(context.Background(), unix)), allOptions)
		switch {
		case err != nil && errs.KindOf(err) != errs.Unauthenticated:
			t.Errorf("refused with %v", err)
		case err == nil && c.Local && (c.UID != unix.UID || c.GID != unix.GID || c.Token != "" || c.ActAs != ""):
			t.Errorf("local, but %+v", c)
		case err == nil && !c.Local && (c.Token == "" || c.Claims.User == "" || c.ActAs != "" && !PosixName(c.ActAs)):
			t.Errorf("by token, but %+v", c)
		}
	})
}
