package rest

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"schedrestd/api"
	"schedrestd/internal/errs"
)

// address is the address of a server.
type address struct {
	text     string // as the user entered it
	socket   string // path of a UNIX socket; "" for none
	base     string // "http://host:6820/prefix", without a slash at the end
	spelling string // "slurm" or "sched"; "" if the URL contains no API version
	version  string // "v0.0.43", if the URL contains it
	secure   bool
	direct   bool // the server is in this process; text is the configuration of the cluster
}

func (a *address) String() string {
	if a.direct {
		return "the controller of " + shorten(a.text)
	}
	return "the gateway at " + shorten(a.text)
}

// directAddress returns the address of the server in this process. The text
// argument is the configuration of the cluster, for people.
func directAddress(text string) *address {
	return &address{text: text, base: "http://localhost", spelling: "sched", version: api.Latest.String(), direct: true}
}

// versionedPath matches a URL path that ends with an API version, such as
// /slurm/v0.0.44. On some servers the paths of the API begin with /sched
// instead of /slurm.
var versionedPath = regexp.MustCompile(`^(.*)/(slurm|sched)/(v0\.0\.[0-9]+)$`)

const urlForms = "use http://HOST:PORT, https://HOST or unix:/PATH"

// parseURL parses an address. If the URL ends with /slurm/VERSION or
// /sched/VERSION, parseURL stores the spelling (slurm or sched) and the
// version. The client uses both in the paths of all requests.
func parseURL(text string) (*address, error) {
	if socket, ok := strings.CutPrefix(text, "unix:"); ok {
		socket = strings.TrimPrefix(socket, "//")
		if !path.IsAbs(socket) {
			return nil, errs.New(errs.Malformed, "URL %s: the path of a UNIX socket begins with a slash", shorten(text)).
				WithHint(urlForms)
		}
		return &address{text: text, socket: socket, base: "http://localhost"}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return nil, errs.New(errs.Malformed, "URL %s: unsupported form", shorten(text)).WithHint(urlForms)
	case u.User != nil:
		return nil, errs.New(errs.Malformed, "URL: it must not contain a user or password").
			WithHint("the token is read from SCHED_JWT, or from a file with --token-file")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errs.New(errs.Malformed, "URL: it must not contain a query or fragment").WithHint(urlForms)
	}
	a := &address{text: text, secure: u.Scheme == "https"}
	prefix := strings.TrimRight(u.Path, "/")
	if m := versionedPath.FindStringSubmatch(prefix); m != nil {
		prefix, a.spelling, a.version = m[1], m[2], m[3]
	}
	a.base = u.Scheme + "://" + u.Host + prefix
	return a, nil
}
