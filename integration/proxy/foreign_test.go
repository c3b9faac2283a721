package proxy

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// tool is a program from another project that makes tokens and RSA keys.
type tool struct {
	name    string
	require func(t *testing.T)
	// rsa creates a key in dir and returns the public key as a JSON Web Key.
	rsa func(t *testing.T, dir string) string
	// hs256 signs claims with the secret in a file. rs256 signs claims with the
	// key that rsa created in dir.
	hs256 func(t *testing.T, secret, claims string) string
	rs256 func(t *testing.T, dir, claims string) string
}

var tools = []tool{
	{"python3-jwt", needPython, pythonKey, pythonHS256, pythonRS256},
	{"jose", func(t *testing.T) { harness.FindProgram(t, "jose", "jose") }, joseKey, joseHS256, joseRS256},
	{"openssl", func(t *testing.T) { harness.FindProgram(t, "openssl", "openssl") }, opensslKey, opensslHS256, opensslRS256},
	{"the standard library", func(*testing.T) {}, stdlibKey, stdlibHS256, stdlibRS256},
}

// TestForeignTokens checks that the gateway and both daemons accept tokens that
// other programs made, with both algorithms and with key sets that other
// programs made. It uses a gateway that has the keys, and a gateway without
// keys, for which the daemons verify the tokens. A token with one changed
// letter in its signature must be refused.
func TestForeignTokens(t *testing.T) {
	t.Parallel()
	l, u, dir := harness.NewLab(t), harness.OrdinaryUser(t), t.TempDir()
	var set []string
	usable := map[string]bool{}
	for _, tool := range tools {
		t.Run("key of "+tool.name, func(t *testing.T) {
			tool.require(t)
			set = append(set, tool.rsa(t, dir))
			usable[tool.name] = true
		})
	}
	jwks := filepath.Join(l.Dir, "etc", "jwks.json")
	harness.Must(t, os.WriteFile(jwks, []byte(`{"keys":[`+strings.Join(set, ",")+`]}`), 0o400))
	restartWithKeys(l, t, "jwt_key="+l.Key()+",jwks="+jwks)
	gateways := map[string]string{"keys here": l.URL, "the daemons verify": startKeyless(l, t)}

	claims := fmt.Sprintf(`{"iat":%d,"exp":%d,"sun":%q}`, time.Now().Unix(), time.Now().Add(time.Hour).Unix(), u.Name)
	for _, tool := range tools {
		for _, algorithm := range []string{"HS256", "RS256"} {
			t.Run(tool.name+" "+algorithm, func(t *testing.T) {
				if !usable[tool.name] {
					tool.require(t)
				}
				var token string
				if algorithm == "HS256" {
					token = tool.hs256(t, l.Key(), claims)
				} else {
					token = tool.rs256(t, dir, claims)
				}
				checkAccepted(l, t, token, u.Name, gateways)
				checkRefused(l, t, harness.TamperSignature(token), gateways)
			})
		}
	}
}

// TestProvidersTokens checks access tokens like those of identity providers.
// They contain all of a provider's claims, the user's name in a claim that the
// site chooses, and dates in the formats that other programs use.
func TestProvidersTokens(t *testing.T) {
	t.Parallel()
	l, u, dir := harness.NewLab(t), harness.OrdinaryUser(t), t.TempDir()
	jwks := filepath.Join(l.Dir, "etc", "jwks.json")
	// Like a provider's key set, this one contains an encryption key and fields
	// for certificates.
	set := fmt.Sprintf(`{"keys":[{"kid":"enc-1","kty":"RSA","alg":"RSA-OAEP","use":"enc","n":"AQAB","e":"AQAB","x5c":["MIIC"],"x5t":"x"},
		%s,{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"ec-1"}]}`,
		strings.Replace(stdlibKey(t, dir), "{", `{"x5c":["not a certificate"],"x5t":"AAAA","x5t#S256":"AAAA",`, 1))
	harness.Must(t, os.WriteFile(jwks, []byte(set), 0o400))
	restartWithKeys(l, t, "jwt_key="+l.Key()+",jwks="+jwks+",userclaimfield=preferred_username")
	gateways := map[string]string{"keys here": l.URL, "the daemons verify": startKeyless(l, t)}

	now := time.Now().Unix()
	dates := fmt.Sprintf(`"iat":%d,"exp":%d,"nbf":%d`, now, now+3600, now)
	name := fmt.Sprintf(`"preferred_username":%q`, u.Name)
	const plain = `{"alg":"RS256","typ":"JWT","kid":"own"}`
	for _, tt := range []struct{ name, header, claims string }{
		{"Keycloak", plain, `{` + dates + `,"auth_time":0,"jti":"b2c5a1f0-7d3e-4a57-9b1e-2f4c8d9a0e11","iss":"https://id.example.org/realms/hpc","aud":["account","sched"],
			"sub":"3f1d4e8a-51c2-4b1f-a0a7-0d7c2f7e6b55","typ":"Bearer","azp":"sched","session_state":"77aa","acr":"1","allowed-origins":["*"],
			"realm_access":{"roles":["offline_access","uma_authorization"]},"resource_access":{"account":{"roles":["manage-account"]}},
			"scope":"openid profile email","sid":"77aa","email_verified":true,"name":"Ada Łovelace",` + name + `,"given_name":"Ada","email":"ada@example.org"}`},
		{"Okta", `{"kid":"own","alg":"RS256"}`, `{"ver":1,"jti":"AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE","iss":"https://example.okta.com/oauth2/default","aud":"api://default",
			` + dates + `,"cid":"0oabskvc6442nkvQO0h7","uid":"00u5t60iloOHN9pBi0h7","scp":["openid","offline_access"],"groups":["Everyone"],"sub":"ada@example.org",` + name + `}`},
		{"Azure", `{"typ":"JWT","alg":"RS256","x5t":"AAAA","kid":"own"}`, `{"aud":"6e74172b-be56-4843-9ff4-e66a39bb12e3","iss":"https://login.microsoftonline.com/72f988bf/v2.0",` + dates + `,
			"aio":"AXQAi/8IAAAA","azp":"6e74172b","azpacr":"0","name":"Ada","oid":"690222be","rh":"I","scp":"access_as_user","sub":"HKZpfaHyWadeOouYlitjrI","tid":"72f988bf","uti":"fqiBqXLPj0","ver":"2.0","xms_st":{"sub":"x"},` + name + `}`},
		{"an access token by RFC 9068", `{"typ":"at+JWT","alg":"RS256","kid":"own"}`, `{` + dates + `,"client_id":"s6BhdRkqt3","scope":"openid",` + name + `}`},
		{"no kid and no typ", `{"alg":"RS256"}`, `{` + dates + `,` + name + `}`},
		{"dates with a point", plain, fmt.Sprintf(`{"iat":%d.0,"exp":%d.000,%s}`, now, now+3600, name)},
		{"dates with an exponent", plain, `{"iat":1.7e9,"exp":4.1024448E+9,` + name + `}`},
		{"blanks and escapes", "{ \"alg\" : \"RS256\" ,\n\"kid\":\"\\u006fwn\" }", "\n{ \"iat\" : " + fmt.Sprint(now) + ",\t\"\\u0065xp\":" + fmt.Sprint(now+3600) + ", " + name + "}\r\n"},
		{"sun before the site's claim", plain, `{` + dates + `,"sun":"` + u.Name + `","username":"somebody-else","preferred_username":"ada@example.org"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token := stdlibSigned(t, dir, tt.header, tt.claims)
			checkAccepted(l, t, token, u.Name, gateways)
			checkRefused(l, t, harness.TamperSignature(token), gateways)
		})
	}
}

// restartWithKeys restarts the daemons with the given AuthAltParameters in both
// configurations.
func restartWithKeys(l *harness.Lab, t *testing.T, parameters string) {
	t.Helper()
	for _, name := range []string{"schedrestd", "schedctld", "scheddbd"} {
		l.Daemons[name].Stop()
	}
	for _, path := range []string{l.Conf(), l.DbdConf()} {
		text, err := os.ReadFile(path)
		harness.Must(t, err)
		harness.Must(t, os.WriteFile(path, []byte(harness.Substitute(t, string(text), `^AuthAltParameters=.*$`, `AuthAltParameters="`+parameters+`"`)), 0o600))
	}
	l.Up(l.DBD)
	l.Up(l.Ctld)
	l.Up(l.Restd)
}

// startKeyless starts another gateway, whose configuration names no keys, and
// returns its address.
func startKeyless(l *harness.Lab, t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	conf := regexp.MustCompile(`jwt_key=[^",]*,?|jwks=[^",]*,?`).ReplaceAllString(string(text), "")
	path := filepath.Join(l.Dir, "etc", "keyless.conf")
	harness.Must(t, os.WriteFile(path, []byte(conf), 0o600))
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	p := l.Restd
	p.Args = append([]string{}, l.Restd.Args...)
	p.Args[1], p.Args[len(p.Args)-1] = path, address
	l.StartGatewayPart(t, p, nil)
	return "http://" + address
}

// checkAccepted fails the test unless the token is accepted as the given
// user's: by the controller when schedctl sends the token, and by both daemons
// when each gateway sends it.
func checkAccepted(l *harness.Lab, t *testing.T, token, user string, gateways map[string]string) {
	t.Helper()
	if out, err := schedctl(l, token, "show", "nodes"); err != nil || !strings.Contains(out, l.Node) {
		t.Errorf("schedctl: %v\n%s", err, out)
	}
	for name, url := range gateways {
		for _, path := range []string{"/sched/" + harness.Version + "/ping", "/scheddb/" + harness.Version + "/ping"} {
			if got := requestFrom(l, t, url, path, token).UserOrStatus(); got != "as "+user {
				t.Errorf("%s: %s counted %s, want as %s", name, path, got, user)
			}
		}
	}
}

// checkRefused fails the test unless the token is refused: by the controller
// when schedctl sends the token, and by both daemons when each gateway sends
// it.
func checkRefused(l *harness.Lab, t *testing.T, token string, gateways map[string]string) {
	t.Helper()
	if out, err := schedctl(l, token, "show", "nodes"); err == nil {
		t.Errorf("schedctl accepted a forged token:\n%s", out)
	}
	for name, url := range gateways {
		for _, path := range []string{"/sched/" + harness.Version + "/ping", "/scheddb/" + harness.Version + "/ping"} {
			if got := requestFrom(l, t, url, path, token).UserOrStatus(); got != "401" {
				t.Errorf("%s: with a forged token %s counted %s", name, path, got)
			}
		}
	}
}

// schedctl runs schedctl with a token over TCP. If token is "", it runs
// schedctl without a token, and the kernel identifies the user who runs the
// test.
func schedctl(l *harness.Lab, token string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(harness.Bin, "schedctl"), append([]string{"-f", l.Conf()}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	if token != "" {
		cmd.Env = append(cmd.Env, "SCHED_JWT="+token)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// requestFrom requests path from the gateway at url. This gateway need not be
// the lab's.
func requestFrom(l *harness.Lab, t *testing.T, url, path, token string) harness.Answer {
	t.Helper()
	lab := *l
	lab.URL, lab.T = url, t
	a, err := lab.TryRequest(http.DefaultClient, "GET", path, "", "X-SCHED-USER-TOKEN: "+token)
	harness.Must(t, err)
	return a
}

// runTool runs a foreign program and returns its output.
func runTool(t *testing.T, input string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, errOut.Bytes())
	}
	return strings.TrimSpace(out.String())
}

// python is Debian's Python, which finds Debian's Python packages.
const python = "/usr/bin/python3"

func needPython(t *testing.T) {
	t.Helper()
	if exec.Command(python, "-c", "import jwt, cryptography").Run() != nil {
		harness.SkipMissing(t, "python3-jwt is not here; apt-get install python3-jwt python3-cryptography")
	}
}

// pythonKey publishes its key without a kid.
func pythonKey(t *testing.T, dir string) string {
	t.Helper()
	return runTool(t, `
import sys
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
with open(sys.argv[1], "wb") as f:
    f.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
print(RSAAlgorithm.to_jwk(key.public_key()))
`, python, "-", filepath.Join(dir, "python.pem"))
}

// pythonToken is a script that signs claims with the key in a file.
const pythonToken = `
import json, jwt, sys
print(jwt.encode(json.loads(sys.argv[3]), open(sys.argv[1], "rb").read(), algorithm=sys.argv[2]))
`

func pythonHS256(t *testing.T, secret, claims string) string {
	t.Helper()
	return runTool(t, pythonToken, python, "-", secret, "HS256", claims)
}

func pythonRS256(t *testing.T, dir, claims string) string {
	t.Helper()
	return runTool(t, pythonToken, python, "-", filepath.Join(dir, "python.pem"), "RS256", claims)
}

func joseKey(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "jose.jwk")
	runTool(t, "", "jose", "jwk", "gen", "-i", `{"alg":"RS256","kid":"jose"}`, "-o", path)
	return runTool(t, "", "jose", "jwk", "pub", "-i", path)
}

func joseHS256(t *testing.T, secret, claims string) string {
	t.Helper()
	raw, err := os.ReadFile(secret)
	harness.Must(t, err)
	key := filepath.Join(t.TempDir(), "oct.jwk")
	harness.Must(t, os.WriteFile(key, []byte(`{"kty":"oct","alg":"HS256","k":"`+base64.RawURLEncoding.EncodeToString(raw)+`"}`), 0o600))
	return runTool(t, claims, "jose", "jws", "sig", "-I", "-", "-k", key, "-c", "-s", `{"protected":{"typ":"JWT"}}`)
}

func joseRS256(t *testing.T, dir, claims string) string {
	t.Helper()
	return runTool(t, claims, "jose", "jws", "sig", "-I", "-", "-k", filepath.Join(dir, "jose.jwk"), "-c", "-s", `{"protected":{"kid":"jose"}}`)
}

func opensslKey(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "openssl.pem")
	runTool(t, "", "openssl", "genrsa", "-out", path, "3072")
	block, _ := pem.Decode([]byte(runTool(t, "", "openssl", "rsa", "-in", path, "-pubout")))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	harness.Must(t, err)
	return harness.PublicJWK(key.(*rsa.PublicKey), "openssl")
}

// opensslToken is a shell script as a site might write it. It reads the claims
// from its input. $1 is the algorithm, and $2 is the file with the key.
const opensslToken = `
url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
text=$(printf '{"alg":"%s","typ":"JWT"}' "$1" | url).$(url)
case $1 in
HS256) signature=$(printf %s "$text" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(od -An -v -tx1 "$2" | tr -d ' \n')" -binary | url) ;;
RS256) signature=$(printf %s "$text" | openssl dgst -sha256 -sign "$2" -binary | url) ;;
esac
printf '%s.%s\n' "$text" "$signature"
`

func opensslHS256(t *testing.T, secret, claims string) string {
	t.Helper()
	return runTool(t, claims, "sh", "-c", opensslToken, "sh", "HS256", secret)
}

func opensslRS256(t *testing.T, dir, claims string) string {
	t.Helper()
	return runTool(t, claims, "sh", "-c", opensslToken, "sh", "RS256", filepath.Join(dir, "openssl.pem"))
}

func stdlibKey(t *testing.T, dir string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(filepath.Join(dir, "own.der"), x509.MarshalPKCS1PrivateKey(key), 0o600))
	return harness.PublicJWK(&key.PublicKey, "own")
}

func stdlibHS256(t *testing.T, secret, claims string) string {
	t.Helper()
	raw, err := os.ReadFile(secret)
	harness.Must(t, err)
	text := harness.UnsignedToken(`{"alg":"HS256"}`, claims)
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func stdlibRS256(t *testing.T, dir, claims string) string {
	t.Helper()
	return stdlibSigned(t, dir, `{"alg":"RS256","typ":"JWT","kid":"own"}`, claims)
}

// stdlibSigned returns a token with exactly this header and payload, signed
// with the key in dir.
func stdlibSigned(t *testing.T, dir, header, claims string) string {
	t.Helper()
	der, err := os.ReadFile(filepath.Join(dir, "own.der"))
	harness.Must(t, err)
	key, err := x509.ParsePKCS1PrivateKey(der)
	harness.Must(t, err)
	return harness.SignToken(t, key, header, claims)
}
