package plan

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// TestReport checks what --check prints. The parent must get a Plan that makes
// it read all keys, also those of a listener that the service manager opens.
func TestReport(t *testing.T) {
	path := writeConfig(t, sample+"TLSParameters=restd_cert_file=/c.pem,restd_cert_key_file=/k.pem\n")
	t.Setenv("SLURM_JWT", "daemon")
	t.Setenv("SCHEDRESTD_RATE", "5:10")
	t.Setenv("SLURMRESTD_CORS_ORIGINS", "https://a,http://b:8080")
	t.Setenv("SCHEDRESTD_DEPRECATED", "v0.0.40:2026-12-01:2027-06-01,v0.0.41:2027-06-01")
	t.Setenv("SCHEDRESTD_AUDIT_LOG", "/tmp/audit")
	t.Setenv("SCHEDRESTD_SECURITY", "strict_bodies,require_user_name")
	t.Setenv("SCHEDRESTD_LOG", "syslog:/nowhere")
	t.Setenv("SCHEDRESTD_HOSTS", "portal.example.org,localhost")
	for _, tt := range []struct {
		name   string
		listen []string
		want   string // the row of the addresses
		https  bool   // the Plan has a listener for https
	}{
		{"no address", nil, "those that the service manager opens", true},
		{"an address", []string{"127.0.0.1:0"}, "127.0.0.1:0", false},
		{"two addresses", []string{"https://127.0.0.1:0", "unix:/nowhere/s"}, "https://127.0.0.1:0, unix:/nowhere/s", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host := new(fakeHost)
			var out, errOut bytes.Buffer
			if status := runCommand(host, startHere(), append([]string{"--check", "-f", path, "-v", "--max-connections", "7"}, tt.listen...), &out, &errOut); status != 0 {
				t.Fatalf("exit status %d: %s", status, &errOut)
			}
			rows := map[string]string{}
			for line := range strings.Lines(out.String()) {
				name, text, _ := strings.Cut(strings.TrimSpace(line), "  ")
				rows[name] = strings.TrimSpace(text)
			}
			for name, want := range map[string]string{
				"configuration": path, "variables": "SCHEDRESTD_AUDIT_LOG, SCHEDRESTD_DEPRECATED, SCHEDRESTD_HOSTS, SCHEDRESTD_LOG, SCHEDRESTD_RATE, SCHEDRESTD_SECURITY, SLURMRESTD_CORS_ORIGINS, SLURM_JWT",
				"web pages": "https://a, http://b:8080", "deprecated": "v0.0.40:2026-12-01:2027-06-01, v0.0.41:2027-06-01",
				"addresses": tt.want, "TLS": "certificate /c.pem, key /k.pem", "rate": "5 requests per second of one user, 10 at once",
				"security": "require_user_name, strict_bodies", "audit log": "/tmp/audit", "idempotency": "off", "unknown users": "refused",
			} {
				if rows[name] != want {
					t.Errorf("%s: %q, want %q", name, rows[name], want)
				}
			}
			if hosts := strings.Split(rows["host names"], ", "); hosts[0] != "localhost" || hosts[1] != "portal.example.org" || slices.Contains(hosts[2:], "localhost") {
				t.Errorf("host names %q", hosts)
			}
			if !strings.HasPrefix(rows["tokens"], "accepted") || !strings.HasPrefix(rows["limits"], "connections=7 ") || !strings.Contains(rows["controllers"], ":") {
				t.Errorf("printed:\n%s", &out)
			}
			plan := host.plan
			https := false
			for _, l := range plan.Listen {
				https = https || l.TLS
			}
			if plan.Mode != ipc.ModeRead || https != tt.https || plan.Setup.Audit || plan.Audit.Path == "" {
				t.Errorf("mode %d, listeners %+v, the workers expect an auditor: %t", plan.Mode, plan.Listen, plan.Setup.Audit)
			}
		})
	}
}

// TestDescribeService checks as whom --check says that the workers run. Without
// root, -g leaves the user as it is.
func TestDescribeService(t *testing.T) {
	group := ipc.Service{HasGroup: true, GID: 7}
	for _, tt := range []struct {
		name    string
		root    bool
		service ipc.Service
		want    string
	}{
		{"no option", false, ipc.Service{}, "the user who starts it"},
		{"-g", false, group, fmt.Sprintf("the user who starts it (uid %d, gid 7)", os.Geteuid())},
		{"-g as root", true, group, "this user (uid 0, gid 7)"},
		{"-u", false, ipc.Service{HasUser: true, HasGroup: true, Name: "u", UID: 6, GID: 7}, "u (uid 6, gid 7)"},
	} {
		o := options{start: ipc.ConfigSetup{Root: tt.root}}
		if got := o.describeService(&query.WholePlan{Plan: ipc.Plan{Service: tt.service}}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestDescribeTokens checks what --check says about tokens.
func TestDescribeTokens(t *testing.T) {
	tests := []struct {
		name, conf, want string
	}{
		{"no tokens", "", "not accepted"},
		{"a key set", "AuthAltTypes=auth/jwt\nAuthAltParameters=jwks=/j\n", "accepted; public keys /j; of iss any, aud any, scopes all"},
		{"identities", "AuthAltTypes=auth/jwt\nAuthAltParameters=jwks=/j,use_jwt_client_ids\n", "accepted; they may have the claims of an identity; public keys /j; of iss any, aud any, scopes all"},
		{"only identities", "AuthAltTypes=auth/jwt\nAuthAltParameters=jwks=/j,use_jwt_client_ids_only\n", "accepted; they need the claims of an identity; public keys /j; of iss any, aud any, scopes all"},
	}
	for _, tt := range tests {
		var out, errOut bytes.Buffer
		path := writeConfig(t, "ClusterName=c\nSlurmctldHost=localhost\nAuthType=auth/munge\n"+tt.conf)
		t.Setenv("SCHED_JWT", "daemon") // writeConfig has unset it
		if status := runCommand(new(fakeHost), startHere(), []string{"--check", "-f", path, "unix:/s"}, &out, &errOut); status != 0 {
			t.Fatalf("%s: exit status %d: %s", tt.name, status, &errOut)
		}
		_, text, _ := strings.Cut(out.String(), "\ntokens ")
		if line, _, _ := strings.Cut(text, "\n"); strings.TrimSpace(line) != tt.want {
			t.Errorf("%s: %q, want %q in\n%s", tt.name, strings.TrimSpace(line), tt.want, &out)
		}
	}
}

// TestDescribeLifespan checks what --check and the log at the start say about the
// exchange of tokens.
func TestDescribeLifespan(t *testing.T) {
	const jwt, never = "AuthAltTypes=auth/jwt\n", "a token can't be exchanged for one that expires later"
	for _, tt := range []struct{ conf, want string }{
		{"", "no tokens"},
		{jwt, "anyone who has a token can exchange it for one of any lifespan; AuthAltParameters=disable_token_creation prevents this"},
		{jwt + "AuthAltParameters=jwt_key=/k,jwks=/j\n", "anyone who has a token can exchange it for one of any lifespan; AuthAltParameters=disable_token_creation prevents this"},
		{jwt + "AuthAltParameters=jwt_key=/k,max_token_lifespan=3600\n", "anyone who has a token can exchange it for one of 3600 seconds, again and again; AuthAltParameters=disable_token_creation prevents this"},
		{jwt + "AuthAltParameters=jwt_key=/k,disable_token_creation\n", never},
		{jwt + "AuthAltParameters=jwks=/j\n", never},
	} {
		var out, errOut bytes.Buffer
		path := writeConfig(t, "ClusterName=c\nSlurmctldHost=localhost\nAuthType=auth/munge\n"+tt.conf)
		t.Setenv("SCHED_JWT", "daemon") // writeConfig has unset it
		if status := runCommand(new(fakeHost), startHere(), []string{"--check", "-f", path, "unix:/s"}, &out, &errOut); status != 0 {
			t.Fatalf("%q: exit status %d: %s", tt.conf, status, &errOut)
		}
		if !strings.Contains(out.String(), "\nlifespan ") || !strings.Contains(out.String(), tt.want+"\n") {
			t.Errorf("%q: no %q in\n%s", tt.conf, tt.want, &out)
		}
		errOut.Reset()
		if status := runCommand(new(fakeHost), startHere(), []string{"-f", path, "unix:/s"}, &out, &errOut); status != 0 {
			t.Fatalf("%q: exit status %d: %s", tt.conf, status, &errOut)
		}
		const line = "tokens can be exchanged for others that expire later"
		if logged := strings.Contains(errOut.String(), line); logged != strings.Contains(tt.want, "anyone") {
			t.Errorf("%q: the log has the line: %t\n%s", tt.conf, logged, &errOut)
		}
	}
}

// TestRulesWithoutProvider checks that a start warns if there are rules for tokens
// of an identity provider, and no keys of one: nothing is then limited.
func TestRulesWithoutProvider(t *testing.T) {
	for parameters, want := range map[string]bool{"jwt_key=/k": true, "jwt_key=/k,jwks=/j": false} {
		var out, errOut bytes.Buffer
		path := writeConfig(t, "ClusterName=c\nSlurmctldHost=localhost\nAuthType=auth/munge\nAuthAltTypes=auth/jwt\nAuthAltParameters="+parameters+"\n")
		t.Setenv("SCHED_JWT", "daemon") // writeConfig has unset it
		t.Setenv("SCHEDRESTD_TOKEN_SCOPE_CLAIM", "scope")
		if status := runCommand(new(fakeHost), startHere(), []string{"-f", path, "unix:/s"}, &out, &errOut); status != 0 {
			t.Fatalf("%s: exit status %d: %s", parameters, status, &errOut)
		}
		if logged := strings.Contains(errOut.String(), "do not apply to those of jwt_key="); logged != want {
			t.Errorf("%s: the log has the warning: %t\n%s", parameters, logged, &errOut)
		}
	}
}

// TestDescribeTLS checks that the report says why TLS is off, if a setting is
// missing.
func TestDescribeTLS(t *testing.T) {
	for _, tt := range []struct {
		files ipc.TLS
		want  string
	}{
		{ipc.TLS{}, "off"},
		{ipc.TLS{Certificate: "/c"}, "off, because TLSParameters= has only one of restd_cert_file and restd_cert_key_file"},
		{ipc.TLS{Key: "/k", ClientCA: "/a"}, "off, because TLSParameters= has only one of restd_cert_file and restd_cert_key_file"},
		{ipc.TLS{Certificate: "/c", Key: "/k"}, "certificate /c, key /k"},
		{ipc.TLS{Certificate: "/c", Key: "/k", ClientCA: "/a"}, "certificate /c, key /k, clients need a certificate of /a"},
	} {
		if got := describeTLS(tt.files); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.files, got, tt.want)
		}
	}
}

// TestDescribeModule checks what --check says about cryptography.
func TestDescribeModule(t *testing.T) {
	if got, want := describeModule(""), "Go's, not in FIPS 140-3 mode"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := describeModule("v1.0.0"), "FIPS 140-3 mode, Go Cryptographic Module v1.0.0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
