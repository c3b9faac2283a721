package option

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"schedrestd/ipc/work"
)

// setOrigins parses the origins whose web pages may read the gateway's answers.
// Browsers write an origin in only one form, and the gateway compares it as a
// text. So setOrigins refuses all other forms, which would never match.
func (o *Options) setOrigins(name, v string) error {
	bad := func(format string, args ...any) error {
		return invalid(name, v, ": "+format, args...).
			WithHint("list origins as browsers send them, such as https://portal.example.org,http://127.0.0.1:8080")
	}
	origins := splitList(v)
	if n := len(origins); n == 0 || n > work.MaxOrigins {
		return bad("not 1 to %d origins", work.MaxOrigins)
	}
	for i, origin := range origins {
		if why := checkOrigin(origin); why != "" {
			return bad("%q %s", origin, why)
		}
		if slices.Contains(origins[:i], origin) {
			return bad("%s is given twice", origin)
		}
	}
	o.Setup.Origins = origins
	return nil
}

// checkOrigin returns what is wrong with an origin, or "".
func checkOrigin(origin string) string {
	scheme, rest, _ := strings.Cut(origin, "://")
	defaultPort := map[string]string{"https": "443", "http": "80"}[scheme]
	host, port, hasPort := rest, "", false
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') {
		host, port, hasPort = rest[:i], rest[i+1:], true
	}
	number, err := strconv.ParseUint(port, 10, 16)
	switch {
	case origin == "*" || origin == "null":
		return "is not an origin: any web page could use it"
	case defaultPort == "" || len(origin) > 255:
		return "is not an origin with http:// or https://"
	case strings.ContainsAny(rest, "/?#@"):
		return "has more than a host and a port"
	case hasPort && (err != nil || number == 0 || strconv.FormatUint(number, 10) != port):
		return "has no valid port"
	case port == defaultPort:
		return "names the default port, which browsers leave out"
	case !IsHost(host):
		return "has no host in the form that browsers send (lower case, xn-- for other letters)"
	}
	return ""
}

// IsHost reports whether host is written as in a browser's Origin header.
func IsHost(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return ok && err == nil && addr.Is6() && !addr.Is4In6() && addr.Zone() == "" && addr.String() == inner
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last != "" && strings.Trim(last, "0123456789") == "" { // then browsers take the host for an IPv4 address
		addr, err := netip.ParseAddr(host)
		return err == nil && addr.String() == host
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}
