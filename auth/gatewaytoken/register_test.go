package gatewaytoken_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/auth/gatewaytoken/gatewaytokentest"
)

func parse(t *testing.T, text string) *gatewaytoken.Register {
	t.Helper()
	r, err := gatewaytoken.ParseRegister([]byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return r
}

// TestRegister checks what each kind of line revokes.
func TestRegister(t *testing.T) {
	const id = gatewaytokentest.ID // issued by alice at 22:13:20
	for _, tt := range []struct {
		name, text string
		revoked    bool
	}{
		{"an empty register", "", false},
		{"comments and empty lines", "# revoke all before 2100-01-01T00:00:00Z\n\n \t\n#\n", false},
		{"the line about its creation", "token " + id + " user=alice until=2023-12-14T22:13:20Z\n", false},
		{"its id", "revoke token " + id + "\n", true},
		{"its id, with more spaces", "  revoke\ttoken  " + id + " \n", true},
		{"its id, with a carriage return", "revoke token " + id + "\r\n", true},
		{"another id", "revoke token " + strings.Repeat("A", 26) + "\n", false},
		{"its user, until a second later", "revoke user alice before 2023-11-14T22:13:21Z\n", true},
		{"its user, until its second", "revoke user alice before 2023-11-14T22:13:20Z\n", false},
		{"its user, in another zone", "revoke user alice before 2023-11-15T00:13:21+02:00\n", true},
		{"its user, with a fraction", "revoke user alice before 2023-11-14T22:13:20.1Z\n", true},
		{"another user", "revoke user bob before 2100-01-01T00:00:00Z\n", false},
		{"a user whose name begins alike", "revoke user alic before 2100-01-01T00:00:00Z\n", false},
		{"a user called all", "revoke user all before 2100-01-01T00:00:00Z\n", false},
		{"all, until a second later", "revoke all before 2023-11-14T22:13:21Z\n", true},
		{"all, until its second", "revoke all before 2023-11-14T22:13:20Z\n", false},
		{"an earlier time after a later one", "revoke all before 2024-01-01T00:00:00Z\nrevoke all before 2020-01-01T00:00:00Z\n", true},
		{"an earlier time for the user", "revoke user alice before 2024-01-01T00:00:00Z\nrevoke user alice before 2020-01-01T00:00:00Z\n", true},
		{"its creation after its revocation", "revoke token " + id + "\ntoken " + id + " user=alice\n", true},
		{"the last of several lines", "# x\nrevoke user bob before 2023-11-14T22:13:21Z\nrevoke token " + id + "\n", true},
	} {
		if got := parse(t, tt.text).Revokes(token()); got != tt.revoked {
			t.Errorf("%s: revoked %v", tt.name, got)
		}
	}
	var none *gatewaytoken.Register
	if !none.Revokes(token()) || none.Digest() != "none" {
		t.Errorf("no register: revoked %v, digest %s", none.Revokes(token()), none.Digest())
	}
}

// TestWrongRegister checks that one wrong line makes a register useless, because it
// may be meant to revoke a token.
func TestWrongRegister(t *testing.T) {
	const id = gatewaytokentest.ID
	for _, line := range []string{
		"revoke", "revoke token", "revoke token x", "revoke token " + strings.ToLower(id), "revoke token " + id + "A", "revoke token " + id + " # why",
		"revoke tokens " + id, "Revoke token " + id, id, "revoke " + id, "revoke token " + id + " " + id,
		"revoke user", "revoke user alice", "revoke user alice before", "revoke user alice before now", "revoke user alice after 2023-11-14T22:13:21Z",
		"revoke user alice before 2023-11-14", "revoke user alice before 2023-11-14 22:13:21", "revoke user alice before 1700000000",
		"revoke user alice before 2023-02-30T00:00:00Z", "revoke user -x before 2023-11-14T22:13:21Z", "revoke user a=b before 2023-11-14T22:13:21Z",
		"revoke all", "revoke all before", "revoke all before tomorrow", "revoke all 2023-11-14T22:13:21Z", "revoke everything", "revoke all before 2023-11-14T22:13:21Z Z",
		"token", "token x", "token " + id + " issued=x", "token " + id + " until=", "\x00", "\ufeff# a byte order mark", "; x", "// x",
	} {
		text := "# one\nrevoke all before 2000-01-01T00:00:00Z\n" + line + "\n"
		if r, err := gatewaytoken.ParseRegister([]byte(text)); err == nil || r != nil || !strings.HasPrefix(err.Error(), "line 3: ") {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, text := range []string{"#", "revoke token " + id, "# x\nrevoke all before 2100-01-01T00:00:00Z", "\n "} {
		if _, err := gatewaytoken.ParseRegister([]byte(text)); err == nil || !strings.Contains(err.Error(), "has no line end") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestLines checks that the lines that are written are read as they are meant.
func TestLines(t *testing.T) {
	made := token(func(t *gatewaytoken.Token) { t.Scopes, t.Label = scope.ComputeRead|scope.SlurmdbRead, "ci" })
	r := parse(t, made.Line()+token().Line()+"token "+made.ID+" later=member\n")
	created := gatewaytoken.Created{ID: made.ID, User: "alice", Scopes: "compute.read", Issued: now, Until: now.Add(time.Hour)}
	labelled := created
	labelled.Scopes, labelled.Label = "compute.read+slurmdb.read", "ci"
	if d := cmp.Diff([]gatewaytoken.Created{labelled, created, {ID: made.ID}}, r.Created); d != "" {
		t.Errorf("created: -want +got\n%s", d)
	}
	portal := token(func(t *gatewaytoken.Token) { t.ActFor = "students" })
	if c := parse(t, portal.Line()).Created[0]; c.ActFor != "students" || c.User != "alice" {
		t.Errorf("a portal's: %+v", c)
	}
	if !parse(t, gatewaytoken.RevokeToken(made.ID)).Revokes(made) {
		t.Error("not revoked by its id")
	}

	// A token knows only its second, so those of the current one are revoked, too.
	for _, user := range []string{"alice", "", "bob"} {
		for fraction := range 3 {
			at := now.Add(time.Duration(fraction) * 499_999_999).In(time.FixedZone("", -3600))
			r := parse(t, gatewaytoken.RevokeBefore(user, at))
			for after := -1; after <= 1; after++ {
				issued := token(func(t *gatewaytoken.Token) { t.Issued = now.Add(time.Duration(after) * time.Second) })
				if got, want := r.Revokes(issued), after <= 0 && user != "bob"; got != want {
					t.Errorf("all of %q are revoked at %v, one is issued at %v: revoked %v", user, at, issued.Issued, got)
				}
			}
		}
	}
}

// TestRevokesFor checks that a line about a user also ends what tokens of others do
// as this user.
func TestRevokesFor(t *testing.T) {
	portal := token(func(t *gatewaytoken.Token) { t.User, t.ActFor = "portal", "students" })
	r := parse(t, gatewaytoken.RevokeBefore("bob", now)+gatewaytoken.RevokeBefore("carol", now.Add(-time.Second)))
	for user, want := range map[string]bool{"alice": false, "bob": true, "carol": false, "": false} {
		if got := r.RevokesFor(portal, user); got != want {
			t.Errorf("%s: %v", user, got)
		}
	}
	if r.Revokes(portal) {
		t.Error("a line about bob revokes the portal's token")
	}
	var none *gatewaytoken.Register
	if !none.RevokesFor(portal, "alice") {
		t.Error("no register revokes nothing")
	}
}

// TestDigests checks that registers have the same digest only if they are the same.
func TestDigests(t *testing.T) {
	texts := map[string]string{}
	for _, text := range []string{"", "\n", "#\n", gatewaytoken.RevokeToken(gatewaytokentest.ID), token().Line()} {
		digest := parse(t, text).Digest()
		if other, ok := texts[digest]; ok || len(digest) != 16 || digest != parse(t, text).Digest() {
			t.Errorf("%q has the digest %s, %q too", text, digest, other)
		}
		texts[digest] = text
	}
	if first, second := gatewaytoken.NewID(), gatewaytoken.NewID(); first == second || !gatewaytoken.IsID(first) || !gatewaytoken.IsID(second) {
		t.Errorf("ids %q and %q", first, second)
	}
}
