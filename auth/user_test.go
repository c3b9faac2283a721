package auth

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// identityOf returns the identity claims of a user with the given name and
// number of groups.
func identityOf(name string, groups int) string {
	var list []string
	for i := range groups {
		list = append(list, fmt.Sprintf(`"project-%04d":%d`, i, 100000+i))
	}
	return fmt.Sprintf(`"uid":1001,"gid":1001,"id":{"name":%q,"gecos":"A","dir":"/home/a","shell":"/bin/sh","groups":{%s}}`, name, strings.Join(list, ","))
}

// TestUser checks as which user the gateway takes a token, with each setting of
// the daemons for identity claims.
func TestUser(t *testing.T) {
	const sun = `"sun":"alice"`
	ignored, used, only := Rules{}, Rules{ClientIDs: true}, Rules{ClientIDs: true, ClientIDsOnly: true}
	alice := identityOf("alice", 2)
	numbers := func(uid, gid string) string { return `"uid":` + uid + `,"gid":` + gid + `,"id":{"name":"alice"}` }
	tests := []struct {
		name   string
		rules  Rules
		claims string
		user   string
		uid    string // "-" if the daemons look it up
		why    string // reason of a refusal
	}{
		{"no identity", ignored, sun, "alice", "-", ""},
		{"no identity, identities used", used, sun, "alice", "-", ""},
		{"no identity, but one is required", only, sun, "", "", "no identity: use_jwt_client_ids_only requires"},
		{"an identity that is ignored", ignored, sun + "," + alice, "alice", "-", ""},
		{"an identity", used, sun + "," + alice, "alice", "1001", ""},
		{"the required identity", only, sun + "," + alice, "alice", "1001", ""},
		{"only the identity has the name", only, alice, "alice", "1001", ""},
		{"only the ignored identity has the name", ignored, alice, "", "", "use_jwt_client_ids is not set"},
		{"the identity has no name", only, sun + `,"uid":1001,"gid":1001,"id":{"gecos":"A","dir":"/home/a","shell":"/bin/sh","gids":[1001,1002]}`, "alice", "1001", ""},
		{"nothing has the name", only, `"uid":1001,"gid":1001,"id":{}`, "", "", "no claim names the user"},
		{"the site's claim", Rules{UserField: "mail", ClientIDs: true}, `"mail":"alice",` + alice, "alice", "1001", ""},
		{"numbers in quotes", used, numbers(`"1001"`, `"1001"`), "alice", "1001", ""},
		{"the largest uid", used, numbers("4294967294", "0"), "alice", "4294967294", ""},

		{"another user in id", used, sun + "," + identityOf("root", 0), "", "", "the claim id names another user"},
		{"another user in id, which is ignored", ignored, sun + "," + identityOf("root", 0), "", "", "the claim id names another user"},
		{"another user in username", used, `"username":"bob",` + alice, "", "", "the claim id names another user"},
		{"no user name in id", used, sun + `,"uid":1,"gid":1,"id":{"name":"../root"}`, "", "", "id: the name is not a user name"},
		{"a number as the name in id", used, sun + `,"uid":1,"gid":1,"id":{"name":7}`, "", "", "id: the name is not a user name"},
		{"two names in id", used, sun + `,"uid":1,"gid":1,"id":{"name":"alice","n\u0061me":"root"}`, "", "", "id: duplicate member"},
		{"id is a text", used, sun + `,"uid":1,"gid":1,"id":"alice"`, "", "", "id: not a JSON object"},
		{"id is a text, and ignored", ignored, sun + `,"uid":1,"gid":1,"id":"alice"`, "alice", "-", ""},
		{"no uid", used, sun + `,"gid":1,"id":{"name":"alice"}`, "alice", "-", ""},
		{"no gid, but one is required", only, sun + `,"uid":1,"id":{"name":"alice"}`, "", "", "no identity"},
		{"uid -1", used, numbers("4294967295", "1"), "", "", "uid: not a number from 0 to 4294967294"},
		{"a negative uid", used, numbers("-1", "1"), "", "", "uid: not a number"},
		{"uid with a fraction", used, numbers("1.5", "1"), "", "", "uid: not a number"},
		{"uid null", used, numbers("null", "1"), "", "", "uid: not a number"},
		{"gid as a word", used, numbers("1", `"users"`), "", "", "gid: not a number"},
		{"uid with a sign in quotes", used, numbers(`"+0"`, "1"), "", "", "uid: not a number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			token := sign(goodHeader, claim(tt.claims))
			got, err := Inspect(token, Options{Rules: tt.rules, Now: clock})
			if tt.why != "" {
				refused(t, err, tt.why, token)
				return
			}
			uid := "-"
			if got.UID != nil {
				uid = fmt.Sprint(*got.UID)
			}
			if err != nil || got.User != tt.user || uid != tt.uid {
				t.Errorf("%q, uid %s, %v; want %q, uid %s", got.User, uid, err, tt.user, tt.uid)
			}
		})
	}
}

// TestLongIdentity checks that the token of a user in hundreds of groups is
// accepted, and that one byte more than maxToken is not.
func TestLongIdentity(t *testing.T) {
	rules := Rules{ClientIDs: true, ClientIDsOnly: true}
	long := sign(goodHeader, claim(identityOf("alice", 600)))
	if len(long) < 16<<10 || len(long) > maxToken {
		t.Fatalf("the token has %d bytes", len(long))
	}
	for _, padding := range []int{maxToken - len(long) - 40, maxToken} {
		token := sign(goodHeader, claim(identityOf("alice", 600)+`,"x":"`+strings.Repeat("x", padding*3/4)+`"`))
		claims, err := Inspect(token, Options{Rules: rules, Now: clock})
		if len(token) <= maxToken {
			if err != nil || claims.User != "alice" {
				t.Errorf("%d bytes: %q, %v", len(token), claims.User, err)
			}
			if _, err := (Verifier{Key: testKey(t), Rules: rules, Now: clock}).Verify(token); err != nil {
				t.Errorf("%d bytes: %v", len(token), err)
			}
			continue
		}
		refused(t, err, "too long", token)
	}
}

// TestPrivilegedIdentity checks that a token can't gain the authority of root by
// the uid in its identity claims where requests must name another user.
func TestPrivilegedIdentity(t *testing.T) {
	opt := Options{JWT: true, Now: clock, Rules: Rules{ClientIDs: true}}
	opt.Privileged = func(user string, uid *uint32) bool { return user == "root" || uid != nil && *uid == 0 }
	withUID := func(uid int) string {
		return sign(goodHeader, claim(fmt.Sprintf(`"uid":%d,"gid":1,"id":{"name":"alice"}`, uid)))
	}
	tests := []struct {
		name, token, actAs string
		ok                 bool
	}{
		{"an ordinary uid", withUID(1001), "", true},
		{"root's uid", withUID(0), "", false},
		{"root's uid, with the own name", withUID(0), "alice", false},
		{"root's uid, for another user", withUID(0), "bob", true}, // the daemon decides whether the token may act as bob
		{"an ordinary uid, for root", withUID(1001), "root", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := http.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("X-Slurm-User-Token", tt.token)
			if tt.actAs != "" {
				r.Header.Set("X-Slurm-User-Name", tt.actAs)
			}
			if _, err := FromRequest(r, opt); (err == nil) != tt.ok {
				t.Errorf("%v", err)
			}
		})
	}
}

// FuzzIdentity checks that the identity claims never change the user that
// another claim names.
func FuzzIdentity(f *testing.F) {
	f.Add(`{"name":"alice","groups":{"a":1}}`, "1001", "1001")
	f.Add(`{"name":"root"}`, `"0"`, "0")
	f.Add(`"x"`, "null", "1e3")
	f.Fuzz(func(t *testing.T, id, uid, gid string) {
		for _, rules := range []Rules{{}, {ClientIDs: true}, {ClientIDs: true, ClientIDsOnly: true}} {
			token := sign(goodHeader, claim(`"sun":"alice","uid":`+uid+`,"gid":`+gid+`,"id":`+id))
			if got, err := Inspect(token, Options{Rules: rules, Now: clock}); err == nil && got.User != "alice" {
				t.Errorf("taken for %q", got.User)
			}
		}
	})
}
