package option

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"schedrestd/become"
	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
)

// defaultAdmission returns the default penalties. A source, such as an IPv4
// address or a local user, is blocked if it commits more than thirty offences
// in a burst, or more than one per second for long enough. The block lasts for
// one second, or for up to ten seconds if the offences continue. A source is
// also blocked after three workers have crashed while they were answering its
// requests.
func defaultAdmission() work.Admission {
	return work.Admission{Auth: time.Second, Malformed: time.Second, Crash: 15 * time.Second, Threshold: 30 * time.Second}
}

// maxPenalty is the maximum time in SCHEDRESTD_PENALTIES. A block can last ten
// times as long as a penalty.
const maxPenalty = time.Hour

// setPenalties parses the penalties for offences: "off", or words such as
// auth:1s. A penalty that the value does not name keeps its default.
func (o *Options) setPenalties(name, v string) error {
	a := &o.Setup.Admission
	if v == "off" {
		a.Auth, a.Malformed, a.Crash, a.Threshold = 0, 0, 0, 0
		return nil
	}
	durations := map[string]*time.Duration{
		"auth": &a.Auth, "malformed": &a.Malformed, "crash": &a.Crash, "threshold": &a.Threshold,
	}
	bad := func(format string, args ...any) error {
		return invalid(name, v, ": "+format, args...).
			WithHint("use off, or a list of auth, malformed, crash and threshold, "+
				"each at most once with a time up to %s, such as auth:1s,threshold:30s", maxPenalty)
	}
	words := splitList(v)
	if len(words) == 0 {
		return bad("no penalty is named")
	}
	seen := map[string]bool{}
	for _, word := range words {
		kind, value, _ := strings.Cut(word, ":")
		d, err := time.ParseDuration(value)
		switch {
		case durations[kind] == nil:
			return bad("unknown penalty %q", kind)
		case seen[kind]:
			return bad("%s is given twice", kind)
		case err != nil || d < 0 || d > maxPenalty || d%time.Millisecond != 0:
			return bad("%q has no valid time", word)
		case d == 0 && kind == "threshold":
			return bad("a threshold of 0 would block every client")
		}
		*durations[kind], seen[kind] = d, true
	}
	return nil
}

// setProxies parses the trusted proxies. For a proxy that connects to a UNIX
// socket, the value must name the user that the proxy runs as. Otherwise every
// local user who can connect to the socket would be trusted.
func (o *Options) setProxies(name, v string) (err error) {
	words, netWords := splitList(v), []string{}
	for _, word := range words {
		user, isUnix := strings.CutPrefix(word, "unix")
		if !isUnix || user != "" && user[0] != ':' {
			netWords = append(netWords, word)
			continue
		}
		uid, err := peerUID(strings.TrimPrefix(user, ":"))
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "environment: %s=%s: %s", name, v, word)
		}
		o.Setup.Admission.ProxyUIDs = append(o.Setup.Admission.ProxyUIDs, uid)
	}
	o.Setup.Admission.Proxies, err = parseNetworks(name, v, netWords, len(words), ", or unix:USER")
	return err
}

// peerUID returns the uid of a proxy that connects to a UNIX socket.
func peerUID(name string) (uint32, error) {
	const hint = "name the user that only the proxy runs as, by name or uid, such as unix:haproxy"
	if name == "" {
		return 0, errs.New(errs.Invalid, "it names no user, so any client that can connect to the socket would be trusted").
			WithHint(hint)
	}
	u, _, err := nss.ParseUser(name)
	switch {
	case err != nil:
		return 0, errs.New(errs.Invalid, "%v", err).WithHint(hint)
	case u.UID == become.Overflow:
		return 0, errs.New(errs.Invalid, "uid %d is the overflow uid, which stands for every unmapped user", u.UID).WithHint(hint)
	}
	return u.UID, nil
}

// setExempt parses the addresses and networks that get no penalties.
func (o *Options) setExempt(name, v string) (err error) {
	words := splitList(v)
	o.Setup.Admission.Exempt, err = parseNetworks(name, v, words, len(words), "")
	return err
}

// parseNetworks parses words, each of which is an address or a network. The
// words come from the value of the environment variable called name. This value
// has n words in total. The words that are not passed to parseNetworks have
// another form, such as unix:USER. The hint of an error ends with otherForm,
// which describes that form.
func parseNetworks(name, value string, words []string, n int, otherForm string) (list []netip.Prefix, err error) {
	bad := func(format string, args ...any) error {
		return invalid(name, value, ": "+format, args...).
			WithHint("list addresses, and networks with zero host bits, such as 192.0.2.7,10.0.0.0/8,2001:db8::/32%s", otherForm)
	}
	for _, word := range words {
		p, err := netip.ParsePrefix(word)
		if a, addrErr := netip.ParseAddr(word); addrErr == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
		}
		if err != nil || p != p.Masked() {
			return nil, bad("%s is not an address or network", word)
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		list = append(list, p)
	}
	if n == 0 || len(list) > work.MaxPrefixes {
		return nil, bad("%d networks; must be 1 to %d", n, work.MaxPrefixes)
	}
	return list, nil
}

// maxRate is a number of requests per second that no worker can reach.
const maxRate = 1_000_000

// setRate parses the rate limit of an identity: requests per second, optionally
// followed by a colon and the burst.
func (o *Options) setRate(name, v string) error {
	rate, burst, hasBurst := strings.Cut(v, ":")
	r, err := strconv.ParseUint(rate, 10, 32)
	b := 2 * r
	if hasBurst && err == nil {
		b, err = strconv.ParseUint(burst, 10, 32)
	}
	if err != nil || r < 1 || r > maxRate || b < 1 || b > 2*maxRate {
		return invalid(name, v, " is not a rate").
			WithHint("give requests per second, from 1 to %d, and optionally a burst (default: twice the rate), "+
				"such as 50 or 50:200", maxRate)
	}
	o.Setup.Admission.Rate, o.Setup.Admission.Burst = uint32(r), uint32(b)
	return nil
}
