package dispatcher

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"schedrestd/gateway/confinement"
	"schedrestd/internal/errs"
	"schedrestd/internal/setting"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security/sandbox"
)

// announceStart logs once which user the workers run as, and which listeners
// expose tokens.
func (d *dispatcher) announceStart() {
	c := d.config
	attrs := []any{"worker_per_connection", c.Switches.WorkerPerConnection, "connections", c.Connections,
		"listen", listenerNames(d.listeners)}
	if c.Switches.BecomeUser {
		d.log.Info("each user is served by a worker of their own", append([]any{"max_identities", c.Identities}, attrs...)...)
	} else {
		d.log.Info("starting workers", append([]any{"user", c.Name, "uid", c.UID, "gid", c.GID, "workers", c.Workers}, attrs...)...)
	}
	for _, l := range d.listeners {
		if exposesTokens(l) {
			d.log.Warn("listener accepts plain HTTP from other machines", "listen", l.Name,
				"hint", "anyone who can read the traffic can use its tokens; listen on 127.0.0.1 behind a proxy with TLS, or on https://")
		}
	}
}

// checkScopes returns an error if an address that has scopes is not that of a
// listener. Otherwise a typing error would permit everything. A check opens no
// listener, so it can't know their names.
func checkScopes(setup work.Setup, listeners []ipc.Listening) error {
	opened := slices.ContainsFunc(listeners, func(l ipc.Listening) bool { return l.Name != "" })
	for _, entry := range setup.Scopes {
		_, address, _ := strings.Cut(entry, "=")
		found := slices.ContainsFunc(listeners, func(l ipc.Listening) bool { return setting.Covers(address, l.Name) })
		if !found && (opened || setup.Inetd) {
			return errs.New(errs.Invalid, "the gateway does not listen on %s, which has scopes", address).
				WithHint("it listens on %s: correct SCHEDRESTD_SCOPES, SCHEDRESTD_LISTEN or the argument", cmp.Or(strings.Join(listenerNames(listeners), ", "), "no address"))
		}
	}
	return nil
}

// exposesTokens reports whether l accepts plain HTTP from other machines. It
// checks only the address, so a firewall may still keep other machines out.
func exposesTokens(l ipc.Listening) bool {
	at, err := netip.ParseAddrPort(l.Name)
	return l.Network == ipc.TCP && !l.TLS && err == nil && !at.Addr().Unmap().IsLoopback()
}

// announceServing logs where the gateway listens. It also lists the listeners
// in another network namespace separately.
func (d *dispatcher) announceServing() {
	attrs := []any{"listen", listenerNames(d.listeners)}
	if d.config.Netns != "" {
		inNetns := slices.DeleteFunc(slices.Clone(d.listeners), func(l ipc.Listening) bool { return !l.OtherNetns })
		attrs = append(attrs, "netns", d.config.Netns, "netns_listen", listenerNames(inNetns))
	}
	d.log.Info("serving", attrs...)
}

// listenerNames returns the sorted names of listeners.
func listenerNames(list []ipc.Listening) (names []string) {
	for _, l := range list {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return names
}

// announceConfinement logs once which parts of the workers' confinement are
// active.
func (d *dispatcher) announceConfinement(a announced, enforced ipc.Ready) {
	if parts := d.config.Confinement; len(parts) > 0 { // a check prints them
		confinement.Log(d.log, confinement.AllParts(parts, a.setup.Sandbox, sandbox.Layers(enforced)), a.setup.Inetd)
	}
}

// announceRules logs the effective settings, so that administrators notice a
// setting that is misspelled or that another file overrides.
func (d *dispatcher) announceRules(setup work.Setup) {
	c, a := d.config, setup.Admission
	d.log.Info("rules in force", "audit_log", describeAudit(c.Audit), "idempotency_file", cmp.Or(c.Audit.Claims, "none"),
		"penalties", penaltyCosts(a), "exempt", prefixes(a.Exempt), "trusted_proxies", trustedProxies(a), "scopes", cmp.Or(strings.Join(setup.Scopes, ","), "none"), "token_register", cmp.Or(setup.Register, "none"),
		"rate", cmp.Or(textIf(a.Rate > 0, fmt.Sprintf("%d:%d", a.Rate, a.Burst)), "none"),
		"netns", cmp.Or(c.Netns, "own"), "controller_netns", cmp.Or(c.ControllerNetns, "own"))
	matchesAll := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Bits() == 0 })
	}
	if matchesAll(a.Proxies) {
		d.log.Warn("every address is a trusted proxy: no client has penalties, and X-Forwarded-For of every client counts",
			"trusted_proxies", trustedProxies(a))
	}
	if matchesAll(a.Exempt) && a.Threshold > 0 {
		d.log.Warn("every address is exempt: no client has penalties", "exempt", prefixes(a.Exempt))
	}
	if c.PerSource >= c.Connections && c.Connections > 1 {
		d.log.Warn("--max-per-source has no effect: one source may have all connections",
			"max_per_source", c.PerSource, "connections", c.Connections)
	}
}

// announceUncheckedIdentity warns when workers may run as root or SchedUser.
func (d *dispatcher) announceUncheckedIdentity() {
	c := d.config
	switch {
	case c.Switches.DisableUserCheck && c.Switches.BecomeUser:
		d.log.Warn("identity check is off", "because", "disable_user_check",
			"hint", "an attacker who controls a worker acts as its user, even root or SchedUser; peers of group 0 are still refused")
	case c.Switches.DisableUserCheck:
		d.log.Warn("identity check is off", "because", "disable_user_check",
			"hint", "an attacker who controls a worker acts as its user", "uid", c.UID)
	}
}

// describeAudit returns a description of the audit log's settings, for a line
// in the gateway's own log.
func describeAudit(a ipc.Audit) string {
	if a.Path == "" {
		return "none"
	}
	s := a.Path + ", closed"
	if a.FailOpen {
		s = a.Path + ", open"
	}
	return s + textIf(a.Sync, ", sync")
}

func penaltyCosts(a work.Admission) string {
	if a.Threshold == 0 {
		return "off"
	}
	return fmt.Sprintf("auth:%s,malformed:%s,crash:%s,threshold:%s", a.Auth, a.Malformed, a.Crash, a.Threshold)
}

// trustedProxies returns the list of proxies that may report the addresses of
// their clients.
func trustedProxies(a work.Admission) string {
	var words []string
	for _, uid := range a.ProxyUIDs {
		words = append(words, fmt.Sprintf("unix:%d", uid))
	}
	return prefixes(a.Proxies, words...)
}

// prefixes returns a comma-separated string of the networks in list and the
// strings in extra, or "none" if there are none.
func prefixes(list []netip.Prefix, extra ...string) string {
	var words []string
	for _, p := range list {
		words = append(words, p.String())
	}
	return cmp.Or(strings.Join(append(words, extra...), ","), "none")
}

// textIf returns text if cond is true, and "" otherwise.
func textIf(cond bool, text string) string {
	if cond {
		return text
	}
	return ""
}
