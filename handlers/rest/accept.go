package rest

import (
	"net/http"
	"slices"
	"strings"
)

// preference is one element of an Accept or Accept-Encoding header.
type preference struct {
	name    string // "application/json", "text/*", "gzip", "*"; lower case
	quality int    // in thousandths; 0 means "not acceptable"
}

// preferences parses an Accept or Accept-Encoding header. It treats several
// lines as one list (RFC 9110, 12.4 and 5.3), skips invalid elements, and
// ignores parameters other than q. It treats a header without a valid element
// as missing, because a default answer helps the client more than an error.
func preferences(lines []string) []preference {
	var list []preference
	for _, line := range lines {
		for element := range splitUnquoted(line, ',') {
			if p, ok := readPreference(element); ok {
				list = append(list, p)
			}
		}
	}
	return list
}

func readPreference(element string) (preference, bool) {
	p := preference{quality: 1000}
	for part := range splitUnquoted(element, ';') {
		part = strings.Trim(part, " \t")
		if p.name == "" {
			if p.name = strings.ToLower(part); !isName(p.name) {
				return p, false
			}
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		if !strings.EqualFold(strings.TrimRight(name, " \t"), "q") {
			continue
		}
		q, ok := readQuality(strings.Trim(value, " \t"))
		if !ok {
			return p, false
		}
		p.quality = q
		break // the rest are extensions, of which none are defined
	}
	return p, p.name != ""
}

// isName reports whether s looks like a media range or a coding: one token, or
// two tokens with a slash between them.
func isName(s string) bool {
	slash := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '/' && !slash && i > 0 && i < len(s)-1:
			slash = true
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// readQuality parses a weight from 0 to 1, and returns it in thousandths. It
// ignores all decimals after the third.
func readQuality(s string) (thousandths int, ok bool) {
	whole, decimals, _ := strings.Cut(s, ".")
	if whole != "0" && whole != "1" || strings.Trim(decimals, "0123456789") != "" {
		return 0, false
	}
	if whole == "1" {
		return 1000, strings.Trim(decimals, "0") == ""
	}
	for i := range 3 {
		thousandths *= 10
		if i < len(decimals) {
			thousandths += int(decimals[i] - '0')
		}
	}
	return thousandths, true
}

// splitUnquoted splits s at each separator that is not in quotes.
func splitUnquoted(s string, separator byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		quoted, start := false, 0
		for i := 0; i < len(s); i++ {
			switch {
			case s[i] == '"':
				quoted = !quoted
			case quoted && s[i] == '\\':
				i++
			case !quoted && s[i] == separator:
				if !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(s[start:])
	}
}

// singleValue returns the value of a header that may have only one value, and
// whether the client sent the header. If the client sent different values, ok
// is false.
//
// If the client sent the same value several times, singleValue accepts it. Some
// client libraries add a header that the application has already set, and a
// proxy may join the two lines with a comma. Package auth does not use
// singleValue, because headers with credentials must not be repeated.
func singleValue(h http.Header, name string) (value string, present, ok bool) {
	for _, line := range h.Values(name) {
		for element := range splitUnquoted(line, ',') {
			element = strings.Trim(element, " \t")
			if present && !strings.EqualFold(element, value) {
				return "", true, false
			}
			value, present = element, true
		}
	}
	return value, present, true
}

// choose returns the offer with the highest weight in prefs. If several offers
// have this weight, it returns the first of them. If several preferences match
// an offer, the most specific one applies, wherever it is in prefs. If prefs is
// empty, choose returns the first offer. If no offer is acceptable, choose
// returns "".
func choose(prefs []preference, offers []string) string {
	if len(prefs) == 0 {
		return offers[0]
	}
	best, bestQuality := "", 0
	for _, offer := range offers {
		if q, _ := quality(prefs, offer); q > bestQuality {
			best, bestQuality = offer, q
		}
	}
	return best
}

// quality returns the weight of the media type in the offer argument. If no
// preference matches this type, matched is false.
func quality(prefs []preference, offer string) (q int, matched bool) {
	kind, _, _ := strings.Cut(offer, "/")
	ranges := []string{offer, kind + "/*", "*/*"}
	if offer == MediaTextYAML { // only a client that names it gets it, as in slurmrestd
		ranges = ranges[:1]
	}
	for _, mediaRange := range ranges {
		for _, p := range prefs {
			if p.name == mediaRange {
				q, matched = max(q, p.quality), true
			}
		}
		if matched {
			break
		}
	}
	return q, matched
}

// acceptsHTML reports whether a request asks for HTML by name, as a browser
// does for the address that its user entered. For all other clients, the path /
// does not exist.
func acceptsHTML(h http.Header) bool {
	return slices.ContainsFunc(preferences(h.Values("Accept")), func(p preference) bool { return p.name == "text/html" && p.quality > 0 })
}
