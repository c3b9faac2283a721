package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
)

const (
	oneID   = "ABCDEFGHIJKLMNOPQRSTUVWX27"
	otherID = "72ABCDEFGHIJKLMNOPQRSTUVWX"
)

var tokenNow = time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)

// registerOf returns the path of a register.
func registerOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLife(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1s": time.Second, "90m": 90 * time.Minute, "12h": 12 * time.Hour, "1d": 24 * time.Hour, "30d": 30 * 24 * time.Hour,
		"366d": gatewaytoken.MaxLifetime, "8784h": gatewaytoken.MaxLifetime, "1h30m": 90 * time.Minute, "1.5s": time.Second,
		"": 0, "0": 0, "0d": 0, "0s": 0, "999ms": 0, "-1h": 0, "-1d": 0, "367d": 0, "8784h1s": 0, "65536d": 0, "99999999999d": 0, "18446744073709551617d": 0,
		"30": 0, "d": 0, "1.5d": 0, "1d12h": 0, " 1d": 0, "1 d": 0, "1D": 0, "+1d": 0, "1w": 0, "1y": 0, "infinite": 0, "1e3s": 0,
	} {
		got, err := parseLife(text)
		if got != want || (err == nil) != (want != 0) || err != nil && !strings.Contains(err.Error(), "--for") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestRevocations(t *testing.T) {
	for _, tt := range []struct {
		name string
		ids  []string
		user string
		all  bool
		want string // lines
		err  string
	}{
		{name: "an id", ids: []string{oneID}, want: "revoke token " + oneID + "\n"},
		{name: "two ids", ids: []string{oneID, otherID}, want: "revoke token " + oneID + "\nrevoke token " + otherID + "\n"},
		{name: "a user", user: "alice", want: "revoke user alice before 2026-03-01T12:00:01Z\n"},
		{name: "all", all: true, want: "revoke all before 2026-03-01T12:00:01Z\n"},
		{name: "nothing", err: "needs exactly one of"},
		{name: "an id and a user", ids: []string{oneID}, user: "alice", err: "needs exactly one of"},
		{name: "a user and all", user: "alice", all: true, err: "needs exactly one of"},
		{name: "an id and all", ids: []string{oneID}, all: true, err: "needs exactly one of"},
		{name: "not an id", ids: []string{oneID, "alice"}, err: "argument 2 is not the id"},
		{name: "a token", ids: []string{"eyJhbGciOiJIUzI1NiJ9.e30.AAAA"}, err: "argument 1 is not the id"},
		{name: "two ids in one word", ids: []string{oneID + "\nrevoke token " + otherID}, err: "argument 1 is not the id"},
		{name: "not a user", user: "alice before", err: "--user: not a user name"},
		{name: "a user with a line", user: "alice\nrevoke", err: "--user: not a user name"},
	} {
		lines, err := revocations(tt.ids, tt.user, tt.all, tokenNow)
		if lines != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q, %v", tt.name, lines, err)
		}
		if err != nil && (errs.HintOf(err) == "" && tt.user == "" || strings.Contains(err.Error(), "eyJ")) {
			t.Errorf("%s: %v, hint %q", tt.name, err, errs.HintOf(err))
		}
	}
}

// TestAppend checks that lines are added to a register only if it is right then.
func TestAppend(t *testing.T) {
	line := gatewaytoken.RevokeToken(oneID)
	long := strings.Repeat("# "+strings.Repeat("x", 1021)+"\n", gatewaytoken.MaxRegister/1024)
	for _, tt := range []struct{ name, text, err string }{
		{"an empty register", "", ""},
		{"a comment", "# the tokens\n", ""},
		{"the same line", line, ""},
		{"a wrong line", "revoke it\n", "line 1"},
		{"a wrong line after others", "# x\n" + line + "revoke user alice\n", "line 3"},
		{"no line end", "# x", "line 1"}, // the new line would be part of the comment
		{"no line end after a word", "revoke token", "line 1"},
		{"full", long, "longer than"},
	} {
		path := registerOf(t, tt.text)
		f, err := openRegister(path, true)
		if err != nil {
			t.Fatal(err)
		}
		err = appendLine(f, line, gatewaytoken.MaxRegister)
		f.Close()
		got, _ := os.ReadFile(path)
		want := tt.text
		if tt.err == "" {
			want += line
		}
		if string(got) != want {
			t.Errorf("%s: the register has %.200q", tt.name, got)
		}
		if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || errs.HintOf(err) == "") {
			t.Errorf("%s: %v, hint %q, want %q", tt.name, err, errs.HintOf(err), tt.err)
		}
	}
}

// TestReplacedRegister checks that lines that were added to a file that has been
// replaced meanwhile are reported as lost.
func TestReplacedRegister(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"replaced": func(path string) error { return os.Rename(registerOf(t, "# new\n"), path) },
		"removed":  os.Remove,
	} {
		path := registerOf(t, "# old\n")
		f, err := openRegister(path, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := replace(path); err != nil {
			t.Fatal(err)
		}
		if err := appendLine(f, gatewaytoken.RevokeToken(oneID), gatewaytoken.MaxRegister); err == nil || !strings.Contains(err.Error(), "replaced") || errs.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
	}
}

// TestTwoAppend checks that no line is lost if several commands add lines at once.
func TestTwoAppend(t *testing.T) {
	path := registerOf(t, "")
	errors := make(chan error)
	var want []string
	for range 20 {
		id := gatewaytoken.NewID()
		want = append(want, id)
		go func() {
			f, err := openRegister(path, true)
			if err == nil {
				err = appendLine(f, gatewaytoken.RevokeToken(id), gatewaytoken.MaxRegister)
				f.Close()
			}
			errors <- err
		}()
	}
	for range want {
		if err := <-errors; err != nil {
			t.Error(err)
		}
	}
	f, err := openRegister(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := readRegister(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range want {
		if !r.Revokes(gatewaytoken.Token{ID: id, User: "alice", Issued: tokenNow}) {
			t.Errorf("%s is not revoked", id)
		}
	}
}

func TestOpenRegister(t *testing.T) {
	path := registerOf(t, "")
	t.Setenv(registerVariable, "")
	if _, err := openRegister("", false); err == nil || !strings.Contains(errs.HintOf(err), registerVariable) {
		t.Errorf("no register is named: %v", err)
	}
	if _, err := openRegister(path+"x", true); err == nil || !strings.Contains(errs.HintOf(err), "install -D -m 0644 /dev/null "+path+"x") {
		t.Errorf("no register is there: %v", err)
	}
	if _, err := os.Stat(path + "x"); err == nil {
		t.Error("a register was made")
	}
	t.Setenv(registerVariable, path)
	f, err := openRegister("", true)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestPrintTokens(t *testing.T) {
	made := func(id, user, label string, life time.Duration) string {
		issued := tokenNow.Truncate(time.Second)
		return gatewaytoken.Token{ID: id, User: user, Scopes: scope.ComputeRead | scope.SlurmdbRead, Label: label, Issued: issued, Expires: issued.Add(life)}.Line()
	}
	const third, fourth = "AAAAAAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBBBBBB"
	portal := gatewaytoken.Token{ID: strings.Repeat("C", 26), User: "haproxy", ActFor: "students", Scopes: scope.ComputeRead, Issued: tokenNow.Truncate(time.Second), Expires: tokenNow.Add(time.Hour)}
	r, err := gatewaytoken.ParseRegister([]byte("# tokens\n" + portal.Line() + made(oneID, "alice", "monitor", time.Hour) + made(otherID, "bob", "", 48*time.Hour) +
		made(third, "carol", "ci", time.Hour) + made(fourth, "dave", "expired", time.Second) + gatewaytoken.RevokeToken(otherID) + gatewaytoken.RevokeBefore("carol", tokenNow)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printTokens(&out, r, tokenNow.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`ID                          USER     SCOPE                      UNTIL                 STATE    ACT-FOR   LABEL
%s  haproxy  compute.read               2026-03-01T13:00:00Z  valid    students  
%s  alice    compute.read+slurmdb.read  2026-03-01T13:00:00Z  valid    -         monitor
%s  bob      compute.read+slurmdb.read  2026-03-03T12:00:00Z  revoked  -         
%s  carol    compute.read+slurmdb.read  2026-03-01T13:00:00Z  revoked  -         ci
`, portal.ID, oneID, otherID, third)
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestUnknownUser checks the error about a user whom this machine does not know,
// such as that of a proxy on another machine.
func TestUnknownUser(t *testing.T) {
	err := describeToken(&gatewaytoken.Token{User: "nobody-has-this-name"}, &conf.Cluster{}, "compute.read", "1h")
	if err == nil || !strings.Contains(err.Error(), "does not exist") || !strings.Contains(errs.HintOf(err), "must exist on this machine") {
		t.Errorf("%v, hint %q", err, errs.HintOf(err))
	}
}

// TestCheckPortal checks for which users, scopes and groups there is no token of a
// portal.
func TestCheckPortal(t *testing.T) {
	g, err := nss.LookupGID(1)
	if err != nil {
		t.Skip(err)
	}
	root, err := nss.LookupGID(0)
	if err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct {
		name, group string
		scopes      scope.Set
		uid         uint32
		err         string
	}{
		{"good", g.Name, scope.ComputeRead | scope.ComputeCreate, 1001, ""},
		{"all that it can have", g.Name, scope.All &^ gatewaytoken.NotForOthers, 1001, ""},
		{"root's", g.Name, scope.ComputeRead, 0, "can't be root's"},
		{"cluster.admin", g.Name, scope.ComputeRead | scope.ClusterAdmin, 1001, "can't have the scopes"},
		{"slurmdb.write", g.Name, scope.SlurmdbWrite, 1001, "can't have the scopes"},
		{"a group with a space", "domain users", scope.ComputeRead, 1001, "a group's name"},
		{"a group with an option", "-x", scope.ComputeRead, 1001, "a group's name"},
		{"no such group", "nobody-made-this-group", scope.ComputeRead, 1001, "does not exist"},
		{"a number", "1", scope.ComputeRead, 1001, "can't be the name"},
		{"group 0", root.Name, scope.ComputeRead, 1001, "group 0"},
	} {
		err := checkPortal(&gatewaytoken.Token{User: "portal", ActFor: tt.group}, tt.scopes, tt.uid, &conf.Cluster{})
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestExplainGroup checks what is explained about the group of a portal's token.
func TestExplainGroup(t *testing.T) {
	g, err := nss.LookupGID(1)
	if err != nil {
		t.Skip(err)
	}
	if s := explainGroup(g.Name); s.Outcome != auth.Passed || !strings.Contains(s.Text, "has gid 1 on this machine") {
		t.Errorf("%+v", s)
	}
	if s := explainGroup("nobody-made-this-group"); s.Outcome != auth.Refuses || refusalRemedies[s.Name] == "" {
		t.Errorf("%+v", s)
	}
}

// TestFullRegister checks that a register that is full of tokens can still revoke.
func TestFullRegister(t *testing.T) {
	line := gatewaytoken.Token{ID: oneID, User: "alice", Scopes: scope.ComputeRead, Issued: tokenNow, Expires: tokenNow}.Line()
	f, err := openRegister(registerOf(t, strings.Repeat(line, (gatewaytoken.MaxRegister-gatewaytoken.ForRevocations)/len(line))), true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := issueAfterRevocations(&gatewaytoken.Token{ID: otherID, User: "alice", Issued: tokenNow}, f); err != nil {
		t.Error(err)
	}
	if err := appendLine(f, line, gatewaytoken.MaxRegister-gatewaytoken.ForRevocations); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("another token: %v", err)
	}
	if err := appendLine(f, gatewaytoken.RevokeToken(oneID), gatewaytoken.MaxRegister); err != nil {
		t.Errorf("a revocation: %v", err)
	}
}

// TestIssueAfterRevocations checks that a token that is created in the second of a
// revocation is valid.
func TestIssueAfterRevocations(t *testing.T) {
	now := tokenNow.Truncate(time.Second)
	for text, valid := range map[string]bool{
		"": true, gatewaytoken.RevokeBefore("alice", now): true, gatewaytoken.RevokeBefore("", now): true, gatewaytoken.RevokeBefore("alice", now.Add(time.Hour)): false,
	} {
		f, err := openRegister(registerOf(t, text), false)
		if err != nil {
			t.Fatal(err)
		}
		token := gatewaytoken.Token{ID: oneID, User: "alice", Issued: now}
		err = issueAfterRevocations(&token, f)
		r, readErr := readRegister(f)
		if readErr != nil || (err == nil) != valid || err == nil && r.Revokes(token) || token.Issued.After(now.Add(time.Second)) {
			t.Errorf("%q: %v, issued %v, %v", text, err, token.Issued, readErr)
		}
		f.Close()
	}
}

// TestReportRevoked checks what is said of tokens that are revoked, and of misspelt ids
// and names.
func TestReportRevoked(t *testing.T) {
	until := tokenNow.Add(time.Hour)
	r := &gatewaytoken.Register{Created: []gatewaytoken.Created{{ID: oneID, User: "alice", Until: until}, {ID: otherID, User: "bob", Until: tokenNow.Add(-time.Hour)}}}
	for _, tt := range []struct {
		ids  []string
		user string
		want string
	}{
		{[]string{oneID}, "", "revoked, of the tokens in the register: 1\n"},
		{[]string{oneID, strings.ToLower(otherID)}, "", "has no token " + strings.ToLower(otherID)},
		{nil, "alice", "revoked, of the tokens in the register: 1\n"},
		{nil, "alicf", "has no valid token of alicf"},
		{nil, "bob", "has no valid token of bob"},
		{nil, "", "revoked, of the tokens in the register: 1\n"},
	} {
		var out bytes.Buffer
		reportRevoked(&out, r, tt.ids, tt.user, tokenNow)
		if !strings.Contains(out.String(), tt.want) || strings.HasSuffix(tt.want, "1\n") != !strings.Contains(out.String(), "warning: ") {
			t.Errorf("%v %q: %s", tt.ids, tt.user, out.String())
		}
	}
}

// TestRevokeCommand checks that the command finds the tokens in the register.
func TestRevokeCommand(t *testing.T) {
	line := gatewaytoken.Token{ID: oneID, User: "alice", Scopes: scope.ComputeRead, Issued: time.Now().Add(-time.Hour), Expires: time.Now().Add(time.Hour)}.Line()
	for _, args := range [][]string{{oneID}, {"--user", "alice"}, {"--all"}} {
		path := registerOf(t, line)
		var out, errOut bytes.Buffer
		status := run(append([]string{"token", "revoke", "--register", path}, args...), &out, &errOut)
		if status != 0 || errOut.String() != "revoked, of the tokens in the register: 1\n" {
			t.Errorf("%q: status %d, %s", args, status, errOut.String())
		}
	}
}

// TestPruneCommand checks the command that removes lines of the register.
func TestPruneCommand(t *testing.T) {
	path := registerOf(t, "token "+oneID+" user=alice until=2020-01-01T00:00:00Z\nrevoke token "+otherID+"\n")
	for _, want := range []string{"removed 71 bytes\n", "removed 0 bytes\n"} {
		cmd := pruneCommand(&path)
		var out bytes.Buffer
		cmd.SetErr(&out)
		cmd.SetArgs(nil)
		if err := cmd.Execute(); err != nil || out.String() != want {
			t.Errorf("%v: %q, want %q", err, out.String(), want)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "revoke token "+otherID+"\n" {
		t.Errorf("%v: the register is %q", err, text)
	}
}
