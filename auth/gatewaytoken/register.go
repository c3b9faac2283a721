package gatewaytoken

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxRegister is the maximum size of the register, in bytes.
const MaxRegister = 4 << 20

// A Register says which tokens are revoked. It is a file of lines:
//
//	token ID user=NAME act-for=GROUP scope=SCOPES issued=TIME until=TIME label=LABEL
//	revoke token ID
//	revoke user NAME before TIME
//	revoke all before TIME
//
// A line that begins with token records that one was created, for people and for
// the list that schedctl prints; it has no effect. Empty lines, and lines that
// begin with #, are skipped. A TIME has the format of RFC 3339.
type Register struct {
	Created []Created

	tokens map[string]bool      // ids of revoked tokens
	users  map[string]time.Time // the user's tokens that were issued before are revoked
	lines  map[string]int       // number of lines that revoke all tokens of a user
	all    time.Time            // all tokens that were issued before are revoked
	digest [sha256.Size]byte
}

// Created is the line about a token that was created.
type Created struct {
	ID, User, ActFor, Scopes, Label string
	Issued, Until                   time.Time
}

// ParseRegister parses the content of a register. A line with an error makes the
// whole register invalid, because it may be meant to revoke a token.
func ParseRegister(text []byte) (*Register, error) {
	r := &Register{tokens: map[string]bool{}, users: map[string]time.Time{}, lines: map[string]int{}, digest: sha256.Sum256(text)}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if !bytes.HasSuffix(line, []byte("\n")) {
			return nil, fmt.Errorf("line %d has no line end, so it may not be complete", n)
		}
		if err := r.add(strings.Fields(string(line))); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return r, nil
}

// add adds a line, as words.
func (r *Register) add(words []string) error {
	switch {
	case len(words) == 0 || words[0][0] == '#':
		return nil
	case words[0] == "token":
		return r.addCreated(words)
	case words[0] != "revoke" || len(words) < 2:
	case words[1] == "token" && len(words) == 3:
		if !IsID(words[2]) {
			return errors.New("not the id of a token")
		}
		r.tokens[words[2]] = true
		return nil
	case words[1] == "user" && len(words) == 5 && words[3] == "before":
		if !IsUser(words[2]) {
			return errors.New("not a user name")
		}
		before, err := parseTime(words[4])
		if before.After(r.users[words[2]]) {
			r.users[words[2]] = before
		}
		r.lines[words[2]]++
		return err
	case words[1] == "all" && len(words) == 4 && words[2] == "before":
		before, err := parseTime(words[3])
		if before.After(r.all) {
			r.all = before
		}
		return err
	}
	return errors.New("expected token ID ..., revoke token ID, revoke user NAME before TIME, or revoke all before TIME")
}

func (r *Register) addCreated(words []string) error {
	if len(words) < 2 || !IsID(words[1]) {
		return errors.New("not the id of a token")
	}
	c := Created{ID: words[1]}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "user":
			c.User = value
		case "act-for":
			c.ActFor = value
		case "scope":
			c.Scopes = value
		case "label":
			c.Label = value
		case "issued":
			c.Issued, err = parseTime(value)
		case "until":
			c.Until, err = parseTime(value)
		}
		if err != nil {
			return err
		}
	}
	r.Created = append(r.Created, c)
	return nil
}

func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New("not a time such as 2026-12-31T23:59:59Z")
	}
	return t, nil
}

// Revokes reports whether the register revokes a token. A nil Register revokes
// all tokens.
func (r *Register) Revokes(t Token) bool {
	return r == nil || r.tokens[t.ID] || t.Issued.Before(r.users[t.User]) || t.Issued.Before(r.all)
}

// RevokesFor reports whether the register revokes what a token does as another
// user, because it revokes that user's tokens: a line about alice must end
// everything that acts as alice.
func (r *Register) RevokesFor(t Token, user string) bool {
	return r == nil || t.Issued.Before(r.users[user])
}

// RevokesID reports whether the register revokes the token with this id by its id.
func (r *Register) RevokesID(id string) bool { return r == nil || r.tokens[id] }

// RevokedBefore returns the time until which the tokens of a user are revoked.
func (r *Register) RevokedBefore(user string) time.Time { return r.users[user] }

// LinesOf returns the numbers of lines about a user: created tokens, those of them that
// are revoked one by one, and revocations of all tokens.
func (r *Register) LinesOf(user string) (created, revoked, revokedAll int) {
	for _, c := range r.Created {
		if c.User == user {
			if created++; r.tokens[c.ID] {
				revoked++
			}
		}
	}
	return created, revoked, r.lines[user]
}

// RevokesCreated reports whether the register revokes a token that it records.
func (r *Register) RevokesCreated(c Created) bool {
	return r.Revokes(Token{ID: c.ID, User: c.User, Issued: c.Issued})
}

// Digest returns the beginning of the SHA-256 of the file, in hexadecimal digits.
// Gateways with the same file have the same digest. It is "none" for a nil
// Register.
func (r *Register) Digest() string {
	if r == nil {
		return "none"
	}
	return hex.EncodeToString(r.digest[:8])
}

// Line returns the line that records that a token was created.
func (t Token) Line() string {
	line := fmt.Sprintf("token %s user=%s", t.ID, t.User)
	if t.ActFor != "" {
		line += " act-for=" + t.ActFor
	}
	line += fmt.Sprintf(" scope=%s issued=%s until=%s", t.Scopes, t.Issued.Format(time.RFC3339), t.Expires.Format(time.RFC3339))
	if t.Label != "" {
		line += " label=" + t.Label
	}
	return line + "\n"
}

// RevokeToken returns the line that revokes a token.
func RevokeToken(id string) string { return "revoke token " + id + "\n" }

// RevokeBefore returns the line that revokes the tokens of a user, or of all
// users if user is "", that were issued until now. Tokens know only the second in
// which they were issued, so it also revokes those of the current second.
func RevokeBefore(user string, now time.Time) string {
	who := "all"
	if user != "" {
		who = "user " + user
	}
	return fmt.Sprintf("revoke %s before %s\n", who, now.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339))
}
