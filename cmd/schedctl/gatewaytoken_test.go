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
	"schedrestd/auth/gatewaytoken"
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
		{name: "nothing", err: "needs ids of tokens"},
		{name: "an id and a user", ids: []string{oneID}, user: "alice", err: "needs ids of tokens"},
		{name: "a user and all", user: "alice", all: true, err: "needs ids of tokens"},
		{name: "an id and all", ids: []string{oneID}, all: true, err: "needs ids of tokens"},
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
		err = appendLine(f, line)
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
		if err := appendLine(f, gatewaytoken.RevokeToken(oneID)); err == nil || !strings.Contains(err.Error(), "replaced") || errs.HintOf(err) == "" {
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
				err = appendLine(f, gatewaytoken.RevokeToken(id))
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
	if _, err := openRegister(path+"x", true); err == nil || !strings.Contains(errs.HintOf(err), "install -m 0644 /dev/null "+path+"x") {
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
	r, err := gatewaytoken.ParseRegister([]byte("# tokens\n" + made(oneID, "alice", "monitor", time.Hour) + made(otherID, "bob", "", 48*time.Hour) +
		made(third, "carol", "ci", time.Hour) + made(fourth, "dave", "expired", time.Second) + gatewaytoken.RevokeToken(otherID) + gatewaytoken.RevokeBefore("carol", tokenNow)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printTokens(&out, r, tokenNow.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`ID                          USER   SCOPE                      UNTIL                 STATE    LABEL
%s  alice  compute.read+slurmdb.read  2026-03-01T13:00:00Z  valid    monitor
%s  bob    compute.read+slurmdb.read  2026-03-03T12:00:00Z  revoked  
%s  carol  compute.read+slurmdb.read  2026-03-01T13:00:00Z  revoked  ci
`, oneID, otherID, third)
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
