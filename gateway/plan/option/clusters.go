package option

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"schedrestd/ipc/work"
)

// setClusters parses the clusters to which the page at /status links.
func (o *Options) setClusters(name, v string) error {
	bad := func(format string, args ...any) error {
		return invalid(name, v, ": "+format, args...).
			WithHint("list names and addresses, such as a=https://a.example.org,b=https://sched.example.org/clusters/b")
	}
	list := splitList(v)
	if n := len(list); n == 0 || n > work.MaxOrigins {
		return bad("not 1 to %d clusters", work.MaxOrigins)
	}
	for _, text := range list {
		cluster, address, ok := strings.Cut(text, "=")
		if !ok || cluster == "" || len(text) > work.MaxText || !utf8.ValidString(cluster) || strings.ContainsFunc(cluster, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return bad("%q is not a name and an address", text)
		}
		scheme, rest, _ := strings.Cut(address, "://")
		host, path, _ := strings.Cut(rest, "/")
		if why := checkOrigin(scheme + "://" + host); why != "" {
			return bad("the address in %q %s", text, why)
		}
		if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") != "" {
			return bad("the path in %q has other characters than letters, digits and -_./", text)
		}
	}
	o.Setup.Clusters = list
	return nil
}
