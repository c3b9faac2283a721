package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
)

// TestGatewayTokens checks when gateway tokens are accepted: only if what the
// daemons get in their place ends soon after them.
func TestGatewayTokens(t *testing.T) {
	const creation, lifespan = "disable_token_creation", "max_token_lifespan=3600"
	key := conf.Auth{AuthType: "auth/slurm", JWT: true, JWTKey: "/etc/slurm/jwt.key"}
	with := func(change func(*conf.Auth)) conf.Auth {
		a := key
		change(&a)
		return a
	}
	var none, local work.Setup
	local.Register = "/etc/slurm/tokens"
	unwanted, jwt, only := none, local, local
	unwanted.JWT, jwt.JWT, only.JWT, only.ClientIDsOnly = true, true, true, true
	long := jwt
	long.TokenLifetime = time.Hour
	for _, tt := range []struct {
		name  string
		auth  conf.Auth
		setup work.Setup
		err   string // "" if they are accepted, or not wanted
		hints []string
	}{
		{"not wanted", conf.Auth{}, none, "", nil},
		{"not wanted, without a limit", key, unwanted, "", nil},
		{"no creation", with(func(a *conf.Auth) { a.DisableTokenCreation = true }), jwt, "", nil},
		{"an hour", with(func(a *conf.Auth) { a.MaxTokenLifespan = time.Hour }), jwt, "", nil},
		{"a second", with(func(a *conf.Auth) { a.MaxTokenLifespan = time.Second }), jwt, "", nil},
		{"no creation, and a limit of a day", with(func(a *conf.Auth) { a.DisableTokenCreation, a.MaxTokenLifespan = true, 24*time.Hour }), jwt, "", nil},
		{"auth/cred, whose controller renews nothing", with(func(a *conf.Auth) { a.AuthType = "auth/cred" }), jwt, "", nil},
		{"no creation, and tokens of an hour", with(func(a *conf.Auth) { a.DisableTokenCreation = true }), long, "", nil},
		{"an hour, and tokens of an hour", with(func(a *conf.Auth) { a.MaxTokenLifespan = time.Hour }), long, "SCHEDRESTD_TOKEN_LIFETIME", []string{creation}},
		{"no limit", key, jwt, "token of any lifespan", []string{creation, lifespan}},
		{"a second more than an hour", with(func(a *conf.Auth) { a.MaxTokenLifespan = time.Hour + time.Second }), jwt, "token of any lifespan", []string{creation, lifespan}},
		{"munge without a limit", with(func(a *conf.Auth) { a.AuthType = "auth/munge" }), jwt, "token of any lifespan", []string{creation, lifespan}},
		{"no tokens here", key, local, "need tokens of the cluster", []string{"AuthAltTypes=auth/jwt"}},
		{"no key", with(func(a *conf.Auth) { a.JWTKey, a.JWKS, a.DisableTokenCreation = "", "/etc/slurm/jwks", true }), jwt, "need the cluster's key", []string{"jwt_key=PATH"}},
		{"a key that can't be used", with(func(a *conf.Auth) { a.JWTKey, a.HasUnusableKey = "", true }), jwt, "need the cluster's key", []string{"jwt_key=PATH"}},
		{"only claims of an identity", with(func(a *conf.Auth) { a.DisableTokenCreation = true }), only, "claims of an identity", []string{"use_jwt_client_ids_only"}},
	} {
		err := new(options).configureGatewayTokens(&conf.Cluster{Auth: tt.auth}, &tt.setup)
		if tt.err == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "SCHEDRESTD_TOKEN_REGISTER: ") || !strings.Contains(err.Error(), tt.err) || errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
		}
		for _, hint := range tt.hints {
			if !strings.Contains(errs.HintOf(err), hint) {
				t.Errorf("%s: the hint %q does not name %s", tt.name, errs.HintOf(err), hint)
			}
		}
	}
}

// TestTokenMode checks when the daemons can get credentials in place of gateway tokens,
// and from whom.
func TestTokenMode(t *testing.T) {
	var with, without work.Setup
	with.JWT, with.Register, without.JWT = true, "/etc/slurm/tokens", true
	auth := func(authType string) conf.Auth {
		return conf.Auth{AuthType: authType, JWT: true, JWTKey: "/etc/slurm/jwt.key", Munge: conf.Munge{TTL: time.Minute}}
	}
	sacks := []string{"/run/slurm-c/sack.socket", "/run/slurm/sack.socket", "/run/slurmctld/sack.socket", "/run/slurmdbd/sack.socket"}
	for _, tt := range []struct {
		name  string
		mode  string
		auth  conf.Auth
		setup work.Setup
		user  bool // an ordinary user starts the gateway
		want  work.Credentials
		err   string
	}{
		{"munge", "bound", auth("auth/munge"), with, false, work.Credentials{Munge: work.Munge{Socket: "/run/munge/munge.socket.2", TTL: time.Minute}}, ""},
		{"auth/slurm", "bound", auth("auth/slurm"), with, false, work.Credentials{Sack: sacks}, ""},
		{"auth/cred", "bound", auth("auth/cred"), with, false, work.Credentials{}, "AuthType=auth/cred"},
		{"an ordinary user", "bound", auth("auth/munge"), with, true, work.Credentials{}, "only root"},
		{"no register", "bound", auth("auth/munge"), without, false, work.Credentials{}, "no gateway tokens"},
		{"signed", "signed", auth("auth/slurm"), with, false, work.Credentials{Signed: true}, ""},
		{"signed, an ordinary user", "signed", auth("auth/slurm"), with, true, work.Credentials{Signed: true}, ""},
		{"signed without a key", "signed", auth("auth/munge"), with, false, work.Credentials{}, "only credentials of auth/slurm"},
		{"signed, names", "signed", conf.Auth{AuthType: "auth/slurm", JWT: true, JWTKey: "/k", SlurmClientIDs: true}, with, false, work.Credentials{}, "use_client_ids"},
		{"signed, no register", "signed", auth("auth/slurm"), without, false, work.Credentials{}, "no gateway tokens"},
	} {
		o := new(options)
		o.TokenMode, o.start.Root, o.host = tt.mode, !tt.user, &fakeHost{}
		err := o.configureGatewayTokens(&conf.Cluster{Auth: tt.auth, ClusterName: "c", Path: "/etc/slurm/slurm.conf"}, &tt.setup)
		if tt.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), "SCHEDRESTD_TOKEN_MODE="+tt.mode+": ") || !strings.Contains(err.Error(), tt.err) || errs.HintOf(err) == "" {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if o.Run.Switches.Credentials != (tt.mode == "bound") {
			t.Errorf("%s: whether the parent starts processes: %v", tt.name, o.Run.Switches.Credentials)
		}
		if diff := cmp.Diff(tt.want, tt.setup.Credentials); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

// TestSlurmKey checks that the key is the one with which Slurm's daemons sign.
func TestSlurmKey(t *testing.T) {
	dir := t.TempDir()
	set := filepath.Join(dir, "set")
	if err := os.WriteFile(set, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(name string) string { // a configuration beside which this file is
		d := t.TempDir()
		if err := os.WriteFile(filepath.Join(d, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(d, "slurm.conf")
	}
	both, key := with("slurm.jwks"), with("slurm.key")
	for _, tt := range []struct{ name, conf, key, set, want string }{
		{"a set beside the file", both, "", "", filepath.Join(filepath.Dir(both), "slurm.jwks")},
		{"a set beside the file, and a key elsewhere", both, "/other.key", "", filepath.Join(filepath.Dir(both), "slurm.jwks")},
		{"a key beside the file", key, "", "", filepath.Join(filepath.Dir(key), "slurm.key")},
		{"a key elsewhere", key, "/other.key", "", "/other.key"},
		{"a set elsewhere", key, "", set, set},
		{"a set that does not exist", key, "", "/none.jwks", filepath.Join(filepath.Dir(key), "slurm.key")},
		{"no file", "", "", "", ""},
		{"no file, a key", os.DevNull, "/other.key", "", "/other.key"},
	} {
		o := new(options)
		o.SackKey, o.SackJWKS, o.host = tt.key, tt.set, &fakeHost{}
		if got := o.slurmKey(&conf.Cluster{Path: tt.conf}); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
