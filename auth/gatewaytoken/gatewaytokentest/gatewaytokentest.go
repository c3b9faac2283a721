// Package gatewaytokentest has hostile forms of a gateway token, for the tests of
// all that decide about such a token.
package gatewaytokentest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"schedrestd/auth/gatewaytoken"
)

// What the good token says, from which the forms are made.
const (
	Cluster = "c"
	User    = "alice"
	ID      = "ABCDEFGHIJKLMNOPQRSTUVWX27"

	life = 3600 // seconds
)

// Secret is the key of the cluster.
var Secret = []byte("0123456789abcdef0123456789abcdef")

// A Form is a token that must be refused.
type Form struct {
	Name, Token string
	By          Refuser
}

// A Refuser says who can refuse a Form.
type Refuser uint8

const (
	All    Refuser = iota // the signature is right, so only the form is wrong
	Worker                // it is wrong in what a worker does not pass on
	Keeper                // only who has the key can find it
)

// Good returns the token that is right, issued at the given time.
func Good(now time.Time) string { return sign(gatewaytoken.Header, payload(now)) }

// Group is the group of Acting.
const Group = "students"

// Acting returns a token that is right, and acts for the members of Group.
func Acting(now time.Time) string {
	return sign(gatewaytoken.Header, strings.Replace(payload(now), `"uid":1000`, `"uid":1000,"act":{"group":"`+Group+`"}`, 1))
}

func payload(now time.Time) string {
	return fmt.Sprintf(`{"iss":"c","aud":"c","sun":"alice","uid":1000,"scope":"compute.read compute.create","iat":%d,"exp":%d,"jti":"%s","label":"ci"}`,
		now.Unix(), now.Unix()+life, ID)
}

// sign returns a token with the signature of a gateway token.
func sign(header, payload string) string { return seal(encode(header) + "." + encode(payload)) }

func seal(signed string) string { return signWith(gatewaytoken.Key(Secret), signed) }

func signWith(key []byte, signed string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(signed))
	return signed + "." + encode(string(mac.Sum(nil)))
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// Forms returns the hostile forms of Good(now).
func Forms(now time.Time) []Form {
	iat, exp := fmt.Sprintf(`"iat":%d`, now.Unix()), fmt.Sprintf(`"exp":%d`, now.Unix()+life)
	const scopes, sun, uid, jti, label = `"scope":"compute.read compute.create"`, `"sun":"alice"`, `"uid":1000`, `"jti":"` + ID + `"`, `"label":"ci"`
	var forms []Form
	add := func(by Refuser, name, token string) { forms = append(forms, Form{name, token, by}) }

	for name, header := range map[string]string{
		"typ JWT":                  `{"alg":"HS256","typ":"JWT"}`,
		"typ of an access token":   `{"alg":"HS256","typ":"at+jwt"}`,
		"typ in capital letters":   `{"alg":"HS256","typ":"SCHED+JWT"}`,
		"typ with application/":    `{"alg":"HS256","typ":"application/sched+jwt"}`,
		"no typ":                   `{"alg":"HS256"}`,
		"alg none":                 `{"alg":"none","typ":"sched+jwt"}`,
		"alg HS512":                `{"alg":"HS512","typ":"sched+jwt"}`,
		"alg RS256":                `{"alg":"RS256","typ":"sched+jwt"}`,
		"alg in small letters":     `{"alg":"hs256","typ":"sched+jwt"}`,
		"header in another order":  `{"typ":"sched+jwt","alg":"HS256"}`,
		"header with spaces":       `{"alg": "HS256", "typ": "sched+jwt"}`,
		"header with crit":         `{"alg":"HS256","typ":"sched+jwt","crit":["exp"]}`,
		"header with kid":          `{"alg":"HS256","typ":"sched+jwt","kid":"1"}`,
		"header with jku":          `{"alg":"HS256","typ":"sched+jwt","jku":"http://x/"}`,
		"typ twice":                `{"alg":"HS256","typ":"sched+jwt","typ":"sched+jwt"}`,
		"alg twice":                `{"alg":"none","alg":"HS256","typ":"sched+jwt"}`,
		"an escape in typ":         `{"alg":"HS256","typ":"\u0073ched+jwt"}`,
		"a byte after the header":  gatewaytoken.Header + " ",
		"a byte before the header": "\n" + gatewaytoken.Header,
	} {
		add(All, name, sign(header, payload(now)))
	}

	for _, edit := range []struct{ name, from, to string }{
		{"iss is not aud", `"iss":"c"`, `"iss":"d"`},
		{"aud is not iss", `"aud":"c"`, `"aud":"d"`},
		{"another cluster", `"iss":"c","aud":"c"`, `"iss":"d","aud":"d"`},
		{"the cluster in capital letters", `"iss":"c","aud":"c"`, `"iss":"C","aud":"C"`},
		{"an empty cluster", `"iss":"c","aud":"c"`, `"iss":"","aud":""`},
		{"no cluster", `"iss":"c","aud":"c",`, ``},
		{"aud as a list", `"aud":"c"`, `"aud":["c"]`},
		{"aud twice", `"aud":"c"`, `"aud":"d","aud":"c"`},
		{"iss and aud exchanged", `"iss":"c","aud":"c"`, `"aud":"c","iss":"c"`},

		{"no scope", scopes + `,`, ``},
		{"an empty scope", scopes, `"scope":""`},
		{"an unknown scope", scopes, `"scope":"compute.read compute.write"`},
		{"a scope with a wildcard", scopes, `"scope":"compute.*"`},
		{"a scope twice", scopes, `"scope":"compute.read compute.read"`},
		{"scopes in another order", scopes, `"scope":"compute.create compute.read"`},
		{"scopes with +", scopes, `"scope":"compute.read+compute.create"`},
		{"scopes with two spaces", scopes, `"scope":"compute.read  compute.create"`},
		{"a space after the scopes", scopes, `"scope":"compute.read compute.create "`},
		{"a scope in capital letters", scopes, `"scope":"Compute.Read"`},
		{"scopes as a list", scopes, `"scope":["compute.read","compute.create"]`},

		{"iat as a text", iat, fmt.Sprintf(`"iat":"%d"`, now.Unix())},
		{"iat with a fraction", iat, iat + `.0`},
		{"iat with an exponent", iat, fmt.Sprintf(`"iat":%de0`, now.Unix())},
		{"iat with a zero before", iat, fmt.Sprintf(`"iat":0%d`, now.Unix())},
		{"iat negative", iat, `"iat":-1`},
		{"iat zero", iat, `"iat":0`},
		{"no iat", iat + `,`, ``},
		{"iat too large for 64 bits", iat, `"iat":9223372036854775808`},
		{"iat null", iat, `"iat":null`},
		{"exp as a text", exp, fmt.Sprintf(`"exp":"%d"`, now.Unix()+life)},
		{"exp with a fraction", exp, exp + `.5`},
		{"exp with an exponent", exp, `"exp":1e18`},
		{"exp negative", exp, `"exp":-1`},
		{"exp zero", exp, `"exp":0`},
		{"no exp", exp + `,`, ``},
		{"exp equal to iat", exp, fmt.Sprintf(`"exp":%d`, now.Unix())},
		{"exp before iat", exp, fmt.Sprintf(`"exp":%d`, now.Unix()-1)},
		{"a life of more than 366 days", exp, fmt.Sprintf(`"exp":%d`, now.Unix()+366*24*3600+1)},
		{"exp the largest number", exp, `"exp":9223372036854775807`},
		{"exp too large for 64 bits", exp, `"exp":18446744073709551616`},
		{"iat and exp around the end of numbers", iat + `,` + exp, `"iat":9223372036854775807,"exp":-9223372036854775808`},

		{"uid negative", uid, `"uid":-1`},
		{"uid with a fraction", uid, `"uid":1000.0`},
		{"uid as a text", uid, `"uid":"1000"`},
		{"uid null", uid, `"uid":null`},
		{"uid too large", uid, `"uid":4294967296`},
		{"uid twice", uid, `"uid":0,"uid":1000`},

		{"no user", sun + `,`, ``},
		{"an empty user", sun, `"sun":""`},
		{"a user like an option", sun, `"sun":"-x"`},
		{"a user with a space", sun, `"sun":"a b"`},
		{"a user with NUL", sun, `"sun":"alice\u0000"`},
		{"a user with a quote", sun, `"sun":"a\"b"`},
		{"a user in another alphabet", sun, `"sun":"аlice"`},
		{"a user of 65 bytes", sun, `"sun":"` + strings.Repeat("a", 65) + `"`},
		{"a user as a number", sun, `"sun":0`},
		{"a user as a list", sun, `"sun":["alice"]`},
		{"two users", sun, `"sun":"root","sun":"alice"`},
		{"a user with an escape", sun, `"sun":"\u0061lice"`},
		{"a second user in capital letters", sun, sun + `,"SUN":"root"`},
		{"a second user with a long s", sun, sun + `,"ſun":"root"`},
		{"members' names in capital letters", sun, `"Sun":"alice"`},

		{"an id too short", jti, `"jti":"` + ID[1:] + `"`},
		{"an id too long", jti, `"jti":"` + ID + `A"`},
		{"an id in small letters", jti, `"jti":"` + strings.ToLower(ID) + `"`},
		{"an id with a digit that base32 lacks", jti, `"jti":"` + ID[1:] + `1"`},
		{"an id with a line end", jti, `"jti":"` + ID[1:] + `\n"`},
		{"no id", jti + `,`, ``},
		{"two ids", jti, `"jti":"` + strings.Repeat("A", 26) + `",` + jti},

		{"a label with a space", label, `"label":"c i"`},
		{"a label with a quote", label, `"label":"c\"i"`},
		{"a label with a line end", label, `"label":"ci\n"`},
		{"a label with =", label, `"label":"scope=all"`},
		{"a label too long", label, `"label":"` + strings.Repeat("a", gatewaytoken.MaxLabel+1) + `"`},
		{"an empty label", label, `"label":""`},

		{"act at the end", `"label":"ci"}`, `"label":"ci","act":{"group":"students"}}`},
		{"act as a text", uid, uid + `,"act":"students"`},
		{"act as a list", uid, uid + `,"act":["students"]`},
		{"act as a number", uid, uid + `,"act":1`},
		{"act true", uid, uid + `,"act":true`},
		{"act null", uid, uid + `,"act":null`},
		{"an empty act", uid, uid + `,"act":{}`},
		{"act twice", uid, uid + `,"act":{"group":"root"},"act":{"group":"students"}`},
		{"act within act", uid, uid + `,"act":{"group":"students","act":{"group":"root"}}`},
		{"act with sub (RFC 8693)", uid, uid + `,"act":{"sub":"alice"}`},
		{"act with another member", uid, uid + `,"act":{"group":"students","user":"root"}`},
		{"act in capital letters", uid, uid + `,"ACT":{"group":"students"}`},
		{"act with a space", uid, uid + `,"act": {"group":"students"}`},
		{"an empty group", uid, uid + `,"act":{"group":""}`},
		{"two groups", uid, uid + `,"act":{"group":"root","group":"students"}`},
		{"groups as a list", uid, uid + `,"act":{"group":["students"]}`},
		{"a group as an object", uid, uid + `,"act":{"group":{"group":"students"}}`},
		{"a group null", uid, uid + `,"act":{"group":null}`},
		{"a group as a number", uid, uid + `,"act":{"group":100}`},
		{"a group with a space", uid, uid + `,"act":{"group":"domain users"}`},
		{"a group like an option", uid, uid + `,"act":{"group":"-x"}`},
		{"a group with a wildcard", uid, uid + `,"act":{"group":"*"}`},
		{"a group with an escape", uid, uid + `,"act":{"group":"\u0073tudents"}`},
		{"a group of 65 bytes", uid, uid + `,"act":{"group":"` + strings.Repeat("g", 65) + `"}`},
		{"a group of a kilobyte", uid, uid + `,"act":{"group":"` + strings.Repeat("g", 1<<10) + `"}`},
		{"act with cluster.admin", uid + `,` + scopes, uid + `,"act":{"group":"students"},"scope":"compute.read cluster.admin"`},
		{"act with slurmdb.write", uid + `,` + scopes, uid + `,"act":{"group":"students"},"scope":"slurmdb.write"`},
		{"root's with act", sun + `,` + uid, `"sun":"root","uid":0,"act":{"group":"students"}`},
		{"an unknown member", `"label":"ci"}`, `"label":"ci","x":1}`},
		{"nbf", `"label":"ci"}`, `"label":"ci","nbf":1}`},
		{"members in another order", uid + `,` + scopes, scopes + `,` + uid},
		{"a space between members", uid + `,`, uid + `, `},
		{"a comma at the end", `"label":"ci"}`, `"label":"ci",}`},
		{"bytes after the payload", `"label":"ci"}`, `"label":"ci"}x`},
		{"a line end after the payload", `"label":"ci"}`, `"label":"ci"}` + "\n"},
		{"a second payload", `"label":"ci"}`, `"label":"ci"}{}`},
		{"a space before the payload", `{"iss"`, ` {"iss"`},
		{"a byte order mark", `{"iss"`, "\ufeff" + `{"iss"`},
		{"invalid UTF-8", label, "\"label\":\"c\xff\""},
		{"a payload too long", label, label + strings.Repeat(" ", 3<<10)},
		{"a token too long", label, label + strings.Repeat(" ", 30<<10)},
	} {
		text := payload(now)
		if strings.Count(text, edit.from) != 1 {
			panic(edit.name + ": the payload has not one " + edit.from)
		}
		add(All, edit.name, sign(gatewaytoken.Header, strings.Replace(text, edit.from, edit.to, 1)))
	}
	for name, text := range map[string]string{"an empty payload": "", "null": "null", "a list": "[" + payload(now) + "]", "an empty object": "{}"} {
		add(All, name, sign(gatewaytoken.Header, text))
	}

	good := Good(now)
	signed := good[:strings.LastIndexByte(good, '.')]
	head, body, _ := strings.Cut(signed, ".")
	add(All, "padding in the header", seal(head+"=."+body))
	add(All, "padding in the payload", seal(signed+"="))
	add(All, "stray bits in the payload", seal(stray(encode(gatewaytoken.Header)+"."+encode(payload(now)))))
	add(All, "the other alphabet", seal(head+"."+encode("\xfb\xff")[:2]+"+/"+body))
	add(All, "a line end in the payload", seal(head+"."+body[:8]+"\n"+body[8:]))
	add(All, "a line end after the header", seal(head+"\r\n."+body))
	add(All, "a space before the token", seal(" "+signed))
	add(All, "an empty segment", seal(head+"."))
	add(All, "an empty header", seal("."+body))
	add(All, "four segments", seal(signed+"."+body))
	add(All, "two segments", seal(head))
	add(Worker, "padding in the signature", good+"=")
	add(Worker, "stray bits in the signature", stray(good))
	add(Worker, "a line end after the token", good+"\n")
	add(Worker, "a space after the token", good+" ")
	add(Worker, "a segment after the signature", good+".")
	add(Worker, "no signature", signed+".")
	add(Worker, "no segment for the signature", signed)
	add(Worker, "a shortened signature", signed+"."+encode(strings.Repeat("x", 31)))
	add(Worker, "a longer signature", good+"AAAA")
	add(Keeper, "the cluster's own key", signWith(Secret, signed))
	add(Keeper, "an empty key", signWith(nil, signed))
	add(Keeper, "the key that is derived from an empty one", signWith(gatewaytoken.Key(nil), signed))
	add(Keeper, "the key that is derived twice", signWith(gatewaytoken.Key(gatewaytoken.Key(Secret)), signed))
	add(Keeper, "a signature of zeros", signed+"."+encode(strings.Repeat("\x00", sha256.Size)))
	add(Keeper, "the signature of another token", signed+sealOf(Good(now.Add(-time.Second))))
	add(Keeper, "the signature of the payload alone", signed+sealOf(seal(body)))
	return forms
}

// sealOf returns the signature of a token, with its period.
func sealOf(token string) string { return token[strings.LastIndexByte(token, '.'):] }

// stray sets a bit at the end of base64url that stands for nothing.
func stray(text string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	segment := len(text) - strings.LastIndexByte(text, '.') - 1
	if segment%4 == 0 {
		panic("the last segment has no stray bits")
	}
	last := strings.IndexByte(digits, text[len(text)-1])
	return text[:len(text)-1] + digits[last|1:][:1]
}
