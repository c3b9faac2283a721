package http1

import (
	"bytes"
	"net/netip"
)

// checkTarget checks a request target (RFC 9112, 3.2). It accepts a path with
// an optional query, and an http or https URL with such a path. It also accepts
// an asterisk with OPTIONS, and a host with CONNECT. It refuses all other
// forms, because a proxy may interpret them differently.
func checkTarget(method, target []byte) error {
	switch {
	case target[0] == '/':
		return checkPath(target)
	case string(target) == "*":
		if string(method) != "OPTIONS" {
			return malformed("the request target * is valid only with OPTIONS")
		}
		return nil
	case string(method) == "CONNECT":
		return checkHost(target)
	}
	scheme, rest, ok := bytes.Cut(target, []byte("://"))
	if !ok || !equalFold(scheme, "http") && !equalFold(scheme, "https") {
		return malformed("the request target is neither a path nor an http or https URL")
	}
	end := bytes.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if err := checkHost(rest[:end]); err != nil {
		return err
	}
	return checkPath(rest[end:])
}

func checkHost(host []byte) error {
	switch {
	case bytes.IndexByte(host, '@') >= 0:
		return malformed("the request target has user information before the host")
	case !isHost(host):
		return malformed("the request target has no host, or an invalid one")
	}
	return nil
}

// checkPath checks a path, and the query that may follow it.
func checkPath(path []byte) error {
	query := false
	for i, c := range path {
		switch {
		case c == '#':
			return malformed("the request target has a fragment (#)")
		case c == '?':
			query = true
		case c == '%' && !query && (i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2])):
			return malformed("the path has a % without two hexadecimal digits after it")
		case !isText[c] || c == '\t':
			return malformed("the request target has a control character")
		}
	}
	return nil
}

// isHost reports whether text is a host, optionally followed by a colon and a
// port (RFC 3986, 3.2.2 and 3.2.3). The port may be empty. Percent-encoded
// names are refused.
func isHost(text []byte) bool {
	host, port, _ := bytes.Cut(text, []byte(":"))
	if len(text) > 0 && text[0] == '[' {
		end := bytes.IndexByte(text, ']')
		if end < 0 {
			return false
		}
		address, err := netip.ParseAddr(string(text[1:end]))
		if err != nil || !address.Is6() || address.Zone() != "" {
			return false
		}
		if port = text[end+1:]; len(port) > 0 && port[0] != ':' {
			return false
		}
		port = bytes.TrimPrefix(port, []byte(":"))
	} else if len(host) == 0 || !areAll(&isName, host) {
		return false
	}
	for _, c := range port {
		if !isDigit(c) {
			return false
		}
	}
	return true
}
