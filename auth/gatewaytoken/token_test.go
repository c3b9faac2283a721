package gatewaytoken_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/auth/gatewaytoken/gatewaytokentest"
)

var now = time.Unix(1_700_000_000, 0).UTC()

// token returns a token that is right, with changes.
func token(changes ...func(*gatewaytoken.Token)) gatewaytoken.Token {
	t := gatewaytoken.Token{Cluster: "c", User: "alice", Scopes: scope.ComputeRead, Issued: now, Expires: now.Add(time.Hour), ID: gatewaytokentest.ID}
	for _, change := range changes {
		change(&t)
	}
	return t
}

// TestSign checks that a signed token says what it was made of.
func TestSign(t *testing.T) {
	root, highest := uint32(0), uint32(math.MaxUint32)
	for name, want := range map[string]gatewaytoken.Token{
		"the least":     token(),
		"a uid":         token(func(t *gatewaytoken.Token) { t.UID = &highest }),
		"uid 0":         token(func(t *gatewaytoken.Token) { t.User, t.UID = "root", &root }),
		"all scopes":    token(func(t *gatewaytoken.Token) { t.Scopes = scope.All }),
		"a label":       token(func(t *gatewaytoken.Token) { t.Label = "ci:main/x@host_1-2.3" }),
		"the longest":   token(func(t *gatewaytoken.Token) { t.User, t.Label = strings.Repeat("u", 64), strings.Repeat("l", 64) }),
		"a second":      token(func(t *gatewaytoken.Token) { t.Expires = now.Add(time.Second) }),
		"366 days":      token(func(t *gatewaytoken.Token) { t.Expires = now.Add(gatewaytoken.MaxLifetime) }),
		"a new id":      token(func(t *gatewaytoken.Token) { t.ID = gatewaytoken.NewID() }),
		"a group":       token(func(t *gatewaytoken.Token) { t.User, t.UID, t.ActFor = "portal", &highest, "students" }),
		"longest group": token(func(t *gatewaytoken.Token) { t.ActFor = strings.Repeat("g", 64) }),
		"all for others": token(func(t *gatewaytoken.Token) {
			t.ActFor, t.Scopes = "students", scope.All&^gatewaytoken.NotForOthers
		}),
		"cluster <&\">": token(func(t *gatewaytoken.Token) { t.Cluster = `<&">` }),
	} {
		text, err := gatewaytoken.Sign(want, gatewaytokentest.Secret)
		if err != nil || !gatewaytoken.Is(text) {
			t.Errorf("%s: %q, %v", name, text, err)
			continue
		}
		got, err := gatewaytoken.ParseSigned([]byte(text[:strings.LastIndexByte(text, '.')]))
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v, -want +got\n%s", name, err, d)
		}
	}
}

// TestSignRefuses checks that nothing is signed that would be refused.
func TestSignRefuses(t *testing.T) {
	for name, change := range map[string]func(*gatewaytoken.Token){
		"no cluster":               func(t *gatewaytoken.Token) { t.Cluster = "" },
		"no user":                  func(t *gatewaytoken.Token) { t.User = "" },
		"a user's quote":           func(t *gatewaytoken.Token) { t.User = `a","sun":"root` },
		"no scope":                 func(t *gatewaytoken.Token) { t.Scopes = scope.None },
		"no id":                    func(t *gatewaytoken.Token) { t.ID = "" },
		"no life":                  func(t *gatewaytoken.Token) { t.Expires = now },
		"367 days":                 func(t *gatewaytoken.Token) { t.Expires = now.Add(367 * 24 * time.Hour) },
		"no time":                  func(t *gatewaytoken.Token) { t.Issued = time.Time{} },
		"a group's quote":          func(t *gatewaytoken.Token) { t.ActFor = `g"` },
		"a group's space":          func(t *gatewaytoken.Token) { t.ActFor = "domain users" },
		"a longer group":           func(t *gatewaytoken.Token) { t.ActFor = strings.Repeat("g", 65) },
		"root for others":          func(t *gatewaytoken.Token) { t.User, t.ActFor = "root", "students" },
		"cluster.admin for others": func(t *gatewaytoken.Token) { t.ActFor, t.Scopes = "students", scope.ComputeRead|scope.ClusterAdmin },
		"slurmdb.write for others": func(t *gatewaytoken.Token) { t.ActFor, t.Scopes = "students", scope.SlurmdbWrite },
		"a label's line":           func(t *gatewaytoken.Token) { t.Label = "x\nrevoke" },
	} {
		if text, err := gatewaytoken.Sign(token(change), gatewaytokentest.Secret); err == nil || text != "" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// TestHostileForms checks that a worker refuses a token that is not written as a
// gateway token is, even if its signature is right, and that daemons refuse all of
// them. The test of the same name in gateway/keeper checks that the keeper does.
func TestHostileForms(t *testing.T) {
	key, err := auth.NewKey(gatewaytokentest.Secret)
	if err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return now }
	opt := auth.Options{JWT: true, Rules: auth.Rules{Gateway: gatewaytokentest.Cluster}, Now: clock}
	daemon := auth.Verifier{Key: key, Now: clock}
	good := gatewaytokentest.Good(now)
	if c, err := auth.Inspect(good, opt); err != nil || !c.Gateway || c.User != gatewaytokentest.User || c.ID != gatewaytokentest.ID {
		t.Fatalf("the token that is right: %+v, %v", c, err)
	}
	if c, err := auth.Inspect(gatewaytokentest.Acting(now), opt); err != nil || c.ActFor != gatewaytokentest.Group {
		t.Fatalf("the token that acts for others: %+v, %v", c, err)
	}
	forms := gatewaytokentest.Forms(now)
	if len(forms) < 84 {
		t.Errorf("%d forms", len(forms))
	}
	names := map[string]bool{}
	for _, f := range forms {
		if names[f.Name] || f.Token == good {
			t.Errorf("%s is there twice, or is the token that is right", f.Name)
		}
		names[f.Name] = true
		if c, err := daemon.Verify(f.Token); err == nil {
			t.Errorf("%s: a daemon accepts it: %+v", f.Name, c)
		}
		if f.By == gatewaytokentest.Keeper {
			continue
		}
		// What is not taken for a gateway token has to pass as a token of the cluster,
		// which the daemon above has refused.
		if c, err := auth.Inspect(f.Token, opt); err == nil && c.Gateway {
			t.Errorf("%s: accepted: %+v", f.Name, c)
		}
		r := &http.Request{Header: http.Header{"X-Sched-User-Token": {f.Token}}}
		if c, err := auth.FromRequest(r, opt); err == nil && c.Claims.Gateway {
			t.Errorf("%s: accepted in a request: %+v", f.Name, c)
		}
	}
}
