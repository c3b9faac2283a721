package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestExplainToken runs the command for several tokens, with the configuration
// of a site.
func TestExplainToken(t *testing.T) {
	dir := t.TempDir()
	key, conf, file := []byte("the key of this cluster, 32 bytes"), filepath.Join(dir, "slurm.conf"), filepath.Join(dir, "token")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	signed := func(key []byte, claims string) string {
		b64 := base64.RawURLEncoding.EncodeToString
		text := b64([]byte(`{"alg":"HS256"}`)) + "." + b64([]byte(claims))
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return text + "." + b64(mac.Sum(nil))
	}
	now := time.Now().Unix()
	dated := func(from, to int64, user string) string {
		return fmt.Sprintf(`{"iat":%d,"exp":%d,%s}`, now+from, now+to, user)
	}
	const jwt, withKey = "AuthAltTypes=auth/jwt\n", "AuthAltParameters=jwt_key=KEY"
	good := signed(key, dated(0, 600, `"sun":"root"`))
	tests := []struct {
		name, conf, token string
		status            int
		lines             []string // of standard output
		error, hint       string
	}{
		{"good", jwt + withKey, good, 0, []string{"user       good     root, from the claim sun", "signature  good     verified with jwt_key=KEY",
			"account    good     uid 0 and gid 0 on this machine; may act for every user", "Nothing is wrong with the token."}, "", ""},
		{"the output of scontrol token", jwt + withKey, "SLURM_JWT=" + good + "\n", 0, []string{"signature  good"}, "", ""},
		{"another key, and expired", jwt + withKey, signed([]byte("another key of at least 32 bytes!"), dated(-900, -300, `"sun":"root"`)), 4,
			[]string{"dates      REFUSED  expired 5m", "signature  REFUSED  wrong signature: jwt_key=KEY"}, "error: the token is refused: expired 5m", "get a new token"},
		{"another key", jwt + withKey, signed([]byte("another key of at least 32 bytes!"), dated(0, 300, `"sun":"root"`)), 4,
			[]string{"dates      good"}, "error: the token is refused: wrong signature", "made with another key"},
		{"no user", jwt + withKey, signed(key, dated(0, 300, `"mail":"root"`)), 4, []string{"payload    good     claims exp, iat, mail", "signature  good"},
			"error: the token is refused: no claim names the user", "userclaimfield="},
		{"the site's claim", jwt + withKey + ",userclaimfield=mail", signed(key, dated(0, 300, `"mail":"root"`)), 0, []string{"user       good     root, from the claim mail"}, "", ""},
		{"an identity", jwt + withKey + ",use_jwt_client_ids_only", signed(key, dated(0, 300, `"uid":0,"gid":0,"id":{"name":"root"}`)), 0,
			[]string{"user       good     root with uid 0, from the claims uid, gid and id", "account    good     uid 0 and gid 0 on this machine"}, "", ""},
		{"an identity with another uid", jwt + withKey + ",use_jwt_client_ids_only", signed(key, dated(0, 300, `"uid":7,"gid":7,"id":{"name":"root"}`)), 4,
			[]string{"account    REFUSED  the token has uid 7, but the user has uid 0 on this machine"}, "error: the token is refused: the token has uid 7", "of the account"},
		{"an unknown user's uid", jwt + withKey + ",use_jwt_client_ids_only", signed(key, dated(0, 300, `"uid":65534,"gid":7,"id":{"name":"root"}`)), 4,
			[]string{"account    REFUSED  the token's uid 65534 stands for unknown users"}, "error: the token is refused: the token's uid", ""},
		{"a missing identity", jwt + withKey + ",use_jwt_client_ids_only", good, 4, []string{"user       REFUSED  no identity: use_jwt_client_ids_only requires"},
			"error: the token is refused: no identity", "IDENTITY-PROVIDER.md"},
		{"a user that this machine lacks", jwt + withKey, signed(key, dated(0, 300, `"sun":"nosuchuser"`)), 4,
			[]string{"account    REFUSED  this machine has no user nosuchuser"}, "error: the token is refused: this machine has no user nosuchuser", "SCHEDRESTD_UNKNOWN_USERS=controller"},
		{"a user that only the daemons know", jwt + withKey, signed(key, dated(0, 300, `"sun":"nosuchuser"`)), 0,
			[]string{"account    unknown  this machine has no user nosuchuser; the daemons decide", "Nothing is wrong with the token."}, "", ""},
		{"the user nobody", jwt + withKey, signed(key, dated(0, 300, `"sun":"nobody"`)), 4,
			[]string{"account    REFUSED  uid 65534 stands for unknown users"}, "error: the token is refused: uid 65534", ""},
		{"no key here", jwt + "AuthAltParameters=jwt_key=/nowhere/key", good, 0, []string{"signature  unknown  jwt_key=/nowhere/key", "Nothing is wrong with the token, if its signature is genuine"}, "", ""},
		{"tokens are not accepted", withKey, good, 4, []string{"setting    REFUSED  no token is accepted: ", "signature  good"}, "error: the token is refused: no token is accepted", "add AuthAltTypes=auth/jwt"},
		{"a scheme", jwt + withKey, "Bearer " + good, 4, []string{`text       REFUSED  not only a token: it has "Bearer" before it`}, "error: the token is refused: not only a token", "two dots"},
		{"claims of two users", jwt + withKey, signed(key, dated(0, 300, `"sun":"root","username":"daemon"`)), 0, []string{"user       good     root, from the claim sun"}, "", ""},
		{"one_user_claim and claims of two users", jwt + withKey, signed(key, dated(0, 300, `"sun":"root","username":"daemon"`)), 4,
			[]string{"provider   REFUSED  two claims name different users"}, "error: the token is refused: two claims name different users", ""},
		{"a control character", jwt + withKey, signed(key, dated(0, 300, `"sun":"root","\u001b[2J":1`)), 0, []string{`claims \x1b[2J, exp`}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Contains(tt.name, "only the daemons know") {
				t.Setenv("SCHEDRESTD_UNKNOWN_USERS", "controller")
			}
			if strings.HasPrefix(tt.name, "one_user_claim") {
				t.Setenv("SCHEDRESTD_SECURITY", "disable_user_check, one_user_claim")
			}
			keyPath := filepath.Join(dir, "key")
			write(keyPath, string(key))
			write(conf, fmt.Sprintf("ClusterName=c\nSlurmctldHost=localhost\nAuthType=auth/munge\nSlurmUser=%d\n", os.Geteuid())+strings.ReplaceAll(tt.conf, "KEY", keyPath)+"\n")
			write(file, tt.token)
			var out, errOut bytes.Buffer
			status := run([]string{"-f", conf, "token", "explain", "--token-file", file}, &out, &errOut)
			if status != tt.status {
				t.Errorf("status %d\n%s%s", status, out.String(), errOut.String())
			}
			for _, line := range tt.lines {
				if !strings.Contains(out.String(), strings.ReplaceAll(line, "KEY", keyPath)) {
					t.Errorf("no %q in\n%s", line, out.String())
				}
			}
			if !strings.Contains(errOut.String(), tt.error) || !strings.Contains(errOut.String(), tt.hint) || tt.error == "" && errOut.Len() > 0 {
				t.Errorf("standard error: %s", errOut.String())
			}
			signature := strings.TrimSpace(tt.token[strings.LastIndexByte(tt.token, '.')+1:])
			if strings.Contains(out.String()+errOut.String(), signature) {
				t.Error("shows the signature")
			}
		})
	}
}

// TestExplainTakesNoArgument checks that a token in an argument is neither used
// nor printed.
func TestExplainTakesNoArgument(t *testing.T) {
	var out, errOut bytes.Buffer
	const token = "eyJhbGciOiJIUzI1NiJ9.e30.c2VjcmV0"
	if status := run([]string{"token", "explain", token}, &out, &errOut); status != 2 || !strings.Contains(errOut.String(), "don't use it any more") ||
		strings.Contains(out.String()+errOut.String(), token) {
		t.Errorf("status %d\n%s%s", status, out.String(), errOut.String())
	}
}

// TestExplainNothing checks the hint for an empty standard input, which is not
// the one about tokens for commands.
func TestExplainNothing(t *testing.T) {
	var out, errOut bytes.Buffer
	status := run([]string{"token", "explain"}, &out, &errOut) // standard input of a test is /dev/null
	if status != 4 || !strings.Contains(errOut.String(), "standard input contains no token") || !strings.Contains(errOut.String(), "--token-file") {
		t.Errorf("status %d\n%s%s", status, out.String(), errOut.String())
	}
}
