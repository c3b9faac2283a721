package auth

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// A web page of any site can make a browser send requests to the gateway. The
// rules of browsers for such pages (CORS) only keep the answer secret: a page
// may open any address, and may send a body whose type is text or is not given.
// The browser adds what authenticates its user to a proxy (a password, a cookie,
// a certificate), and the proxy adds a token. A connection to a UNIX socket, for
// example through ssh -L, is itself the credential. So a token in a request does
// not show that its owner wanted the request.
//
// Browsers say where a request comes from: in Sec-Fetch-Site (Fetch Metadata) or,
// if they are old or the address begins with http://, in Origin, which GET and
// HEAD usually lack, or Referer, which a page can leave out. A page can't forge
// these fields.

// CheckChange refuses r, which would change something, if a page of another site
// may have caused it. If permitted is true, the administrator lets pages of the
// request's origin use the gateway.
func CheckChange(r *http.Request, permitted bool) error {
	if sign := foreignSign(r); sign != "" && !permitted {
		return errs.New(errs.Denied, "nothing was changed: a web page of another site has caused this request (%s)", sign).
			WithHint("SCHEDRESTD_CORS_ORIGINS permits pages of chosen origins; a proxy must pass on Host")
	}
	if r.Method == http.MethodGet {
		return checkChangingGET(r)
	}
	return nil
}

// checkChangingGET refuses a GET that would change something, unless a program
// or a script has sent it. A browser opens an address for anyone who can show
// its user a link, also in a mail (Sec-Fetch-Site is "none" then, as if the user
// had typed the address), and by itself: for a preview, or again after a
// restart. Links and images can be in pages of the gateway's own origin, too,
// if a proxy serves other things there.
func checkChangingGET(r *http.Request) error {
	refused := errs.New(errs.Denied, "nothing was changed: a browser may change something only by a script, not by a link or an address").
		WithHint("use a program such as curl, or the pages /status and /docs")
	if mode := r.Header["Sec-Fetch-Mode"]; len(mode) > 0 {
		if len(mode) == 1 && (mode[0] == "cors" || mode[0] == "same-origin") {
			return nil
		}
		return refused
	}
	// Without Fetch Metadata, nothing but the browser's name shows that the
	// request may come from a page that leaves out Referer.
	if isBrowser(r.Header) && r.Header["Origin"] == nil && r.Header["Referer"] == nil {
		return refused
	}
	return nil
}

// foreignSign returns the header field, with its value, that shows that a web
// page of another site has caused r. It returns "" if a program has sent r, or a
// page of this gateway, or if a user has typed the address.
//
// A proxy may have replaced Host, so Host decides only if the browser sends no
// Sec-Fetch-Site.
func foreignSign(r *http.Request) string {
	for _, name := range []string{"Sec-Fetch-Site", "Origin", "Referer"} {
		values := r.Header[name]
		switch {
		case len(values) == 0:
			continue
		case len(values) > 1:
			return name + ", twice"
		case name == "Sec-Fetch-Site" && (values[0] == "same-origin" || values[0] == "none"):
			return ""
		case name != "Sec-Fetch-Site" && isHostOf(values[0], r.Host):
			return ""
		}
		value := values[0]
		if name == "Referer" { // only the origin, because the rest may be secret
			u, err := url.Parse(value)
			if err != nil || u.Host == "" {
				return name
			}
			value = u.Scheme + "://" + u.Host
		}
		return name + ": " + value[:min(len(value), 100)]
	}
	return ""
}

// isHostOf reports whether the origin or address is one of the given host
// and port.
func isHostOf(address, host string) bool {
	_, rest, _ := strings.Cut(address, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest != "" && strings.EqualFold(rest, host)
}

// isBrowser reports whether a browser may have sent a request, judging by the
// name that it uses. The names of all browsers begin alike, and the page of
// another site can't change them.
func isBrowser(h http.Header) bool { return strings.HasPrefix(h.Get("User-Agent"), "Mozilla/") }

// hasFixedHost reports whether the name in Host can't stand for another server.
// An attacker's page can change the address for which its own host name stands
// (DNS rebinding). To the browser, the gateway then has the page's origin, and
// the page acts as the user of the connection and reads the answers. It can't
// change the meaning of an address, of localhost, or of the names of this machine
// and those that the administrator lists.
//
// Programs may use any name without a dot, such as http://slurm/, when they
// connect to a UNIX socket. The Internet has no such names.
func hasFixedHost(r *http.Request, names []string) bool {
	host := strings.ToLower(r.Host)
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(names, host) { // RFC 6761, 6.3
		return true
	}
	fromPage := isBrowser(r.Header) || r.Header["Sec-Fetch-Site"] != nil || r.Header["Origin"] != nil || r.Header["Referer"] != nil
	return !strings.Contains(host, ".") && !fromPage
}
