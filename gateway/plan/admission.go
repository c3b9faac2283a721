package plan

import (
	"fmt"
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
func setPenalties(o *options, v string) error {
	a := &o.admission
	if v == "off" {
		a.Auth, a.Malformed, a.Crash, a.Threshold = 0, 0, 0, 0
		return nil
	}
	durations := map[string]*time.Duration{
		"auth": &a.Auth, "malformed": &a.Malformed, "crash": &a.Crash, "threshold": &a.Threshold,
	}
	bad := func(format string, args ...any) error {
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_PENALTIES=%s: %s", v, fmt.Sprintf(format, args...)).
			WithHint("use off, or a list of auth, malformed, crash and threshold, "+
				"each at most once with a time up to %s, such as auth:1s,threshold:30s", maxPenalty)
	}
	words := splitList(v)
	if len(words) == 0 {
		return bad("no penalty is named")
	}
	seen := map[string]bool{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, ":")
		d, err := time.ParseDuration(value)
		switch {
		case durations[name] == nil:
			return bad("unknown penalty %q", name)
		case seen[name]:
			return bad("%s is given twice", name)
		case err != nil || d < 0 || d > maxPenalty || d%time.Millisecond != 0:
			return bad("%q has no valid time", word)
		case d == 0 && name == "threshold":
			return bad("a threshold of 0 would block every client")
		}
		*durations[name], seen[name] = d, true
	}
	return nil
}

// setProxies parses the trusted proxies. For a proxy that connects to a UNIX
// socket, the value must name the user that the proxy runs as. Otherwise every
// local user who can connect to the socket would be trusted.
func setProxies(o *options, v string) (err error) {
	words, netWords := splitList(v), []string{}
	for _, word := range words {
		name, isUnix := strings.CutPrefix(word, "unix")
		if !isUnix || name != "" && name[0] != ':' {
			netWords = append(netWords, word)
			continue
		}
		uid, err := peerUID(strings.TrimPrefix(name, ":"))
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "environment: SCHEDRESTD_TRUSTED_PROXIES=%s: %s", v, word)
		}
		o.admission.ProxyUIDs = append(o.admission.ProxyUIDs, uid)
	}
	o.admission.Proxies, err = parseNetworks("SCHEDRESTD_TRUSTED_PROXIES", v, netWords, len(words), ", or unix:USER")
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
func setExempt(o *options, v string) (err error) {
	words := splitList(v)
	o.admission.Exempt, err = parseNetworks("SCHEDRESTD_EXEMPT", v, words, len(words), "")
	return err
}

// parseNetworks parses words, each of which is an address or a network. The
// words come from the value of the environment variable called name. This value
// has n words in total. The words that are not passed to parseNetworks have
// another form, such as unix:USER. The hint of an error ends with otherForm,
// which describes that form.
func parseNetworks(name, value string, words []string, n int, otherForm string) (list []netip.Prefix, err error) {
	bad := func(format string, args ...any) error {
		return errs.New(errs.Invalid, "environment: %s=%s: %s", name, value, fmt.Sprintf(format, args...)).
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
func setRate(o *options, v string) error {
	rate, burst, hasBurst := strings.Cut(v, ":")
	r, err := strconv.ParseUint(rate, 10, 32)
	b := 2 * r
	if hasBurst && err == nil {
		b, err = strconv.ParseUint(burst, 10, 32)
	}
	if err != nil || r < 1 || r > maxRate || b < 1 || b > 2*maxRate {
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_RATE=%s is not a rate", v).
			WithHint("give requests per second, from 1 to %d, and optionally a burst (default: twice the rate), "+
				"such as 50 or 50:200", maxRate)
	}
	o.admission.Rate, o.admission.Burst = uint32(r), uint32(b)
	return nil
}
