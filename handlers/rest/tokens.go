package rest

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// tokenNames contains the names of query parameters in which other services
// expect tokens. A client of this gateway might use one of them by mistake. The
// names are written in lower case and with hyphens.
var tokenNames = map[string]bool{
	"x-sched-user-token": true, "x-slurm-user-token": true, "sched-jwt": true, "slurm-jwt": true,
	"access-token":  true, // RFC 6750, 2.3
	"authorization": true, "jwt": true, "token": true,
}

// checkURLToken refuses a request with a token in its URL, whatever its
// headers. Proxies and browsers store URLs in logs and histories, where tokens
// must not appear. If such a request succeeded, the user would not notice the
// mistake. A token in place of a node's name would even be sent to a daemon.
func checkURLToken(u *url.URL) error {
	if containsToken(u.Path) {
		return errs.Wrap(errors.New("a token in the path"), errs.Unauthenticated, auth.Refused)
	}
	if u.RawQuery == "" {
		return nil
	}
	for pair := range strings.FieldsFuncSeq(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		name, value = unescaped(name), unescaped(value)
		known := tokenNames[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")]
		if known || containsToken(name) || containsToken(value) {
			return errs.Wrap(errors.New("a token in the query"), errs.Unauthenticated, auth.Refused)
		}
	}
	return nil
}

// unescaped decodes the URL encoding of s. If s can't be decoded, unescaped
// returns s unchanged, because even malformed text may contain a token.
func unescaped(s string) string {
	if text, err := url.QueryUnescape(s); err == nil {
		return text
	}
	return s
}

// containsToken reports whether s contains a complete token: at least three
// segments with dots between them.
func containsToken(s string) bool {
	start, end := findToken(s)
	return strings.Count(s[start:end], ".") >= 2
}

// Redact returns s without anything that looks like a token or a part of one.
// Clients put tokens into wrong places, and errors and logs quote what clients
// send.
func Redact(s string) string {
	for from := 0; ; {
		start, end := findToken(s[from:])
		if start == end {
			return s
		}
		s = s[:from+start] + redacted + s[from+end:]
		from += start + len(redacted)
	}
}

const redacted = "(a token)"

// findToken returns the start and end of the first word in s that looks like a
// token. If there is none, start equals end.
//
// It looks for a word that begins like a JSON object in base64url, as a token's
// header and payload do. A signature looks like any other word, so findToken
// finds it only together with the part of the token before it.
func findToken(s string) (start, end int) {
	for ; ; start++ {
		i := strings.IndexByte(s[start:], 'e') // the encoding of "{" always begins with "e"
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

// beginsObject reports whether s begins like a JSON object in base64url. It
// checks the first 16 characters: the header of a token is at least that long,
// and no host name matches that many by chance.
func beginsObject(s string) bool {
	const prefixLen = 16
	if len(s) < prefixLen || s[1] != 'y' && s[1] != 'w' { // "{" is followed by a quotation mark, a space or a line end
		return false
	}
	var text [prefixLen]byte
	n, err := base64.RawURLEncoding.Decode(text[:], []byte(s[:prefixLen]))
	if err != nil || n != prefixLen*3/4 || text[0] != '{' || strings.IndexByte("\" \t\r\n", text[1]) < 0 {
		return false
	}
	for _, c := range text[:n] {
		if c >= 0x7f || c < ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false // a chance match
		}
	}
	return true
}
