package keeper

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"schedrestd/auth/gatewaytoken"
	"schedrestd/ipc/query"
)

// keyFile returns an open file with this content.
func keyFile(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestSign checks what a credential contains, and which key signs it, with an
// implementation of tokens that is not ours.
func TestSign(t *testing.T) {
	const (
		first  = `{"kty":"oct","alg":"HS256","kid":"first","k":"Zmlyc3Qga2V5IG9mIHRoZSBzZXQ"}`
		second = `{"kty":"oct","alg":"HS256","kid":"second","k":"_-8gc2Vjb25kIGtleSBvZiB0aGUgc2V0","use":"default"}`
	)
	raw := strings.Repeat("raw key of Slurm", 64)
	for name, tt := range map[string]struct{ file, secret, id string }{
		"raw bytes":    {raw, raw, ""},
		"the first":    {`{"keys":[` + first + `]}`, "first key of the set", "first"},
		"the default":  {`{"keys":[` + first + "," + second + `]}`, "\xff\xef second key of the set", "second"},
		"old alphabet": {`{"keys":[` + strings.Replace(second, "_-8g", "/+8g", 1) + `]}`, "\xff\xef second key of the set", "second"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := readSigningKey(keyFile(t, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now().Truncate(time.Second)
			payload := append([]byte{2}, make([]byte, 32)...)
			text := k.sign(&query.Membership{UID: 1001, GID: 100}, &register{Register: new(gatewaytoken.Register), cluster: "c", schedUID: 64030}, payload, now)
			token, err := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"})).Parse(string(text), func(*jwt.Token) (any, error) { return []byte(tt.secret), nil })
			if err != nil {
				t.Fatal(err)
			}
			var got signedMessage
			claims, err := base64.RawURLEncoding.DecodeString(strings.Split(string(text), ".")[1])
			if err != nil || json.Unmarshal(claims, &got) != nil {
				t.Fatalf("%s: %v", claims, err)
			}
			id, _ := token.Header["kid"].(string)
			want := signedMessage{Issued: now.Unix(), Expires: now.Unix() + 60, Version: 40 << 8, Only: 64030, Context: "sack", Cluster: "c", UID: 1001, GID: 100, Host: hostname, Payload: payload}
			if diff := cmp.Diff(want, got); diff != "" || id != tt.id {
				t.Errorf("kid %q (-want +got):\n%s", id, diff)
			}
		})
	}
}

// TestUnusableSigningKeys checks that a key with which Slurm would not sign is refused, and
// that the reason does not show it.
func TestUnusableSigningKeys(t *testing.T) {
	const good = `{"kty":"oct","alg":"HS256","kid":"a","k":"c2VjcmV0IHNlY3JldCBzZWNyZXQ"}`
	change := func(old, text string) string { return `{"keys":[` + strings.Replace(good, old, text, 1) + `]}` }
	if _, err := readSigningKey(keyFile(t, change("", ""))); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"short":           "secret",
		"long":            strings.Repeat("secret", 64<<10),
		"a public key":    "-----BEGIN PUBLIC KEY-----\nsecretsecretsecretsecret\n-----END PUBLIC KEY-----",
		"not JSON":        `{"keys":[` + good,
		"no keys":         `{"keys":[]}`,
		"another object":  `{"secret":"secret"}`,
		"RSA":             change("oct", "RSA"),
		"another alg":     change("HS256", "HS512"),
		"no id":           change(`"kid":"a",`, ""),
		"short k":         change("c2VjcmV0IHNlY3JldCBzZWNyZXQ", "c2VjcmV0"),
		"k not base64":    change("c2Vj", "c2V!"),
		"expired":         change(`"kid":"a"`, `"kid":"a","exp":1700000000`),
		"expired default": `{"keys":[` + good + `,{"kty":"oct","alg":"HS256","kid":"b","use":"default","exp":"1700000000","k":"c2VjcmV0IHNlY3JldCBzZWNyZXQ"}]}`,
	} {
		k, err := readSigningKey(keyFile(t, file))
		if k != nil || err == nil || strings.Contains(err.Error(), "secretsecret") || strings.Contains(err.Error(), "c2Vj") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if k, err := readSigningKey(keyFile(t, "")); k != nil || err != nil {
		t.Errorf("an empty file: %v, %v", k, err)
	}
}
