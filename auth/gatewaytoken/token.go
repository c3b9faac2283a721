// Package gatewaytoken defines the tokens that only the gateway accepts. Such a
// token does less than its user may do: it has scopes, an end, and an id by which
// it can be revoked.
//
// It is a JWT with one header and one way to write each payload, so a token that
// Parse accepts is exactly what Sign has written, and nothing depends on how a
// parser reads JSON. Its key is derived from the cluster's (Key), so there is no
// second secret to distribute, and no daemon accepts it.
//
// A token of a portal acts for the members of a Unix group (Token.ActFor). It can't
// be for the members of a Slurm account: the keeper, which decides, can ask the user
// database, but not the accounting daemon, and must believe no worker that can.
package gatewaytoken

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"schedrestd/api/scope"
)

// headerType is the type in the header of a token.
const headerType = "sched+jwt"

// Header is the header of all tokens.
const Header = `{"alg":"HS256","typ":"` + headerType + `"}`

// MaxLifetime is the longest time for which a token may be valid.
const MaxLifetime = 366 * 24 * time.Hour

// MaxLabel is the maximum length of a label, in bytes.
const MaxLabel = 64

// NotForOthers are the scopes that a token that acts for others can't have. A
// stolen token of a portal must not change what belongs to the whole cluster.
const NotForOthers = scope.ClusterAdmin | scope.SlurmdbWrite

// Purpose is what the key of gateway tokens is derived for (auth.Key.Derive).
const Purpose = "gateway tokens"

// Token is what a token says.
type Token struct {
	Cluster string // ClusterName of the only gateways that accept it
	User    string
	UID     *uint32 // the user's uid when the token was created; nil if it was not known
	ActFor  string  // Unix group: each request names the member to act as; "": it acts only as User
	Scopes  scope.Set
	Issued  time.Time
	Expires time.Time
	ID      string // unique, 26 characters
	Label   string // what it is for, for people; may be empty
}

// payload is the payload of a token.
type payload struct {
	Issuer   string  `json:"iss"`
	Audience string  `json:"aud"`
	User     string  `json:"sun"`
	UID      *uint32 `json:"uid,omitempty"`
	Act      *act    `json:"act,omitempty"`
	Scope    string  `json:"scope"` // separated by spaces (RFC 8693, 4.2)
	Issued   int64   `json:"iat"`
	Expires  int64   `json:"exp"`
	ID       string  `json:"jti"`
	Label    string  `json:"label,omitempty"`
}

// act is the claim that names the group of Token.ActFor.
type act struct {
	Group string `json:"group"`
}

// Key returns the key of gateway tokens for a cluster with this HS256 key. It is the
// same as that of auth.Key.Derive, which the keeper does not link.
func Key(clusterKey []byte) []byte {
	mac := hmac.New(sha256.New, clusterKey)
	mac.Write([]byte("key for the purpose: " + Purpose))
	return mac.Sum(nil)
}

// NewID returns an id for a token.
func NewID() string { return rand.Text() }

// Is reports whether a token has the header of gateway tokens.
func Is(token string) bool { return strings.HasPrefix(token, encodedHeader) }

var encodedHeader = base64.RawURLEncoding.EncodeToString([]byte(Header)) + "."

// Sign returns t as a token that is signed with the key of a cluster.
func Sign(t Token, clusterKey []byte) (string, error) {
	if err := t.check(); err != nil {
		return "", err
	}
	signed := encodedHeader + base64.RawURLEncoding.EncodeToString(t.payload())
	mac := hmac.New(sha256.New, Key(clusterKey))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// payload returns the payload of the token.
func (t Token) payload() []byte {
	p := payload{Issuer: t.Cluster, Audience: t.Cluster, User: t.User, UID: t.UID, Scope: strings.ReplaceAll(t.Scopes.String(), "+", " "),
		Issued: t.Issued.Unix(), Expires: t.Expires.Unix(), ID: t.ID, Label: t.Label}
	if t.ActFor != "" {
		p.Act = &act{t.ActFor}
	}
	text, _ := json.Marshal(p) // can't fail for these types
	return text
}

var errForm = errors.New("not what this gateway's tokens contain")

// Parse parses a payload, whether or not its token has expired.
func Parse(text []byte) (Token, error) {
	var p payload
	if json.Unmarshal(text, &p) != nil || p.Issuer != p.Audience {
		return Token{}, errForm
	}
	scopes, err := scope.Parse(strings.ReplaceAll(p.Scope, " ", "+"))
	if err != nil {
		return Token{}, errForm
	}
	t := Token{Cluster: p.Issuer, User: p.User, UID: p.UID, Scopes: scopes, ID: p.ID, Label: p.Label,
		Issued: time.Unix(p.Issued, 0).UTC(), Expires: time.Unix(p.Expires, 0).UTC()}
	if p.Act != nil {
		t.ActFor = p.Act.Group
	}
	if err := t.check(); err != nil {
		return Token{}, err
	}
	if !bytes.Equal(t.payload(), text) {
		return Token{}, errForm
	}
	return t, nil
}

// ParseSigned parses the signed part of a token: the header and the payload. It
// does not verify the signature.
func ParseSigned(signed []byte) (Token, error) {
	encoded, ok := strings.CutPrefix(string(signed), encodedHeader)
	if !ok || strings.ContainsAny(encoded, "\r\n") { // Go's decoder skips line ends
		return Token{}, errForm
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return Token{}, errForm
	}
	return Parse(text)
}

// check checks what Sign must not sign, and Parse not accept.
func (t Token) check() error {
	switch life := t.Expires.Sub(t.Issued); {
	case t.Cluster == "":
		return errors.New("no cluster")
	case !IsUser(t.User):
		return errors.New("not a user name")
	case t.Scopes == scope.None:
		return errors.New("no scope")
	case t.ActFor != "" && !IsUser(t.ActFor): // groups have the same names
		return errors.New("not the name of a group")
	case t.ActFor != "" && t.Scopes&NotForOthers != 0:
		return errors.New("a token that acts for others can't have the scopes slurmdb.write and cluster.admin")
	case t.ActFor != "" && t.User == "root":
		return errors.New("a token that acts for others can't be root's")
	case !IsID(t.ID):
		return errors.New("not an id of a token")
	case t.Issued.Unix() <= 0 || life <= 0 || life > MaxLifetime:
		return errors.New("the lifetime must be from 1 second to 366 days")
	}
	return CheckLabel(t.Label)
}

// IsID reports whether text has the form of an id. It can be part of a file's
// line, a log and a URL.
func IsID(text string) bool {
	return len(text) == 26 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// CheckLabel returns an error if text can't be a label. A label can be part of a
// file's line: a label of several words has hyphens between them.
func CheckLabel(text string) error {
	if len(text) > MaxLabel {
		return errors.New("a label has at most 64 bytes")
	}
	for _, c := range []byte(text) {
		if !isWord(c) && c != '@' && c != ':' && c != '/' {
			return errors.New("a label has only letters, digits and the characters - _ . @ : /")
		}
	}
	return nil
}

// IsUser reports whether name is a user's name in a token (auth.PosixName). JSON
// escapes none of its characters.
func IsUser(name string) bool {
	if name == "" || len(name) > 64 || name[0] == '-' {
		return false
	}
	for _, c := range []byte(name) {
		if !isWord(c) {
			return false
		}
	}
	return true
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}
