package handlers

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"schedrestd/auth"
	"schedrestd/errs"
)

// tokenNames are the parameters by which clients of other services send tokens, and by which those of
// this one would who take the query for the header; in lower case, with hyphens.
var tokenNames = map[string]bool{
	"x-sched-user-token": true, "x-slurm-user-token": true, "sched-jwt": true, "slurm-jwt": true,
	"access-token":  true, // RFC 6750, 2.3
	"authorization": true, "jwt": true, "token": true,
}

// stray refuses a request that has a token in its URL, whatever its headers have. A URL is kept where no
// token may be: in the logs and histories of proxies and browsers. One that came by it must not work,
// or nobody would mend that; nor may a daemon hear of it as the name of a node.
func stray(u *url.URL) error {
	if signed(u.Path) {
		return errs.Wrap(errors.New("a token in the path"), errs.Unauthenticated, auth.Refused)
	}
	if u.RawQuery == "" {
		return nil
	}
	for pair := range strings.FieldsFuncSeq(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		name, value = unescaped(name), unescaped(value)
		known := tokenNames[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")]
		if known || signed(name) || signed(value) {
			return errs.Wrap(errors.New("a token in the query"), errs.Unauthenticated, auth.Refused)
		}
	}
	return nil
}

// unescaped is s decoded, or as it is when it can't be: a token does not have to be well written to be one.
func unescaped(s string) string {
	if text, err := url.QueryUnescape(s); err == nil {
		return text
	}
	return s
}

// signed tells whether there is a whole token in s, or an encrypted one: segments with dots between.
func signed(s string) bool {
	start, end := findToken(s)
	return strings.Count(s[start:end], ".") >= 2
}

// conceal is s without what looks like a token in it, or like a part of one. Clients put tokens where none
// belongs, and what they sent is told them, and logged, in many places.
func conceal(s string) string {
	for from := 0; ; {
		start, end := findToken(s[from:])
		if start == end {
			return s
		}
		s = s[:from+start] + concealed + s[from+end:]
		from += start + len(concealed)
	}
}

const concealed = "(a token)"

// findToken is where the first thing in s stands that looks like a token, which are the same place when
// nothing does: a word in which the text of a JSON object begins in base64url, as header
// and payload of a token do. A signature can't be told from other words; it goes with what
// is before it.
func findToken(s string) (start, end int) {
	for ; ; start++ {
		i := strings.IndexByte(s[start:], 'e') // of every "{", in the first six bits
		if i < 0 {
			return 0, 0
		}
		if start += i; beginsObject(s[start:]) {
			break
		}
	}
	if end = strings.IndexAny(s[start:], " \"'\\\r\n\t"); end < 0 {
		return start, len(s)
	}
	return start, start + end
}

// beginsObject tells whether s begins as JSON objects do in base64url. So much of it is looked at that no name
// of a machine does by chance, and no more than the shortest header has.
func beginsObject(s string) bool {
	const enough = 16
	if len(s) < enough || s[1] != 'y' && s[1] != 'w' { // a quotation mark or a space is next, or the end of a line
		return false
	}
	var text [enough]byte
	n, err := base64.RawURLEncoding.Decode(text[:], []byte(s[:enough]))
	if err != nil || n != enough*3/4 || text[0] != '{' || strings.IndexByte("\" \t\r\n", text[1]) < 0 {
		return false
	}
	for _, c := range text[:n] {
		if c >= 0x7f || c < ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false // chance
		}
	}
	return true
}
