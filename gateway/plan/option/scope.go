package option

import (
	"net/netip"
	"slices"
	"strings"

	"schedrestd/api/scope"
	"schedrestd/gateway/endpoint"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// scopeHint says how to give a listener a scope.
const scopeHint = "write, for example, compute.read+slurmdb.read=127.0.0.1:6822"

// listenOn stores the addresses to listen on. Scopes may precede an address, as in
// "compute.read=127.0.0.1:6822".
func (o *Options) listenOn(list []string) error {
	o.Listen = nil
	for _, text := range list {
		address := text
		if scopes, rest, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(scopes, ":/") {
			if why := o.addScopes(scopes, rest); why != "" {
				return errs.New(errs.Invalid, "listen on %q: %s", text, why).WithHint(scopeHint)
			}
			address = rest
		}
		o.Listen = append(o.Listen, address)
	}
	return nil
}

// setScopes sets the scopes of sockets that the service manager passes.
func (o *Options) setScopes(name, v string) error {
	for _, entry := range splitList(v) {
		scopes, address, _ := strings.Cut(entry, "=")
		if why := o.addScopes(scopes, address); why != "" {
			return invalid(name, v, ": %s", why).WithHint(scopeHint)
		}
	}
	if len(o.Setup.Scopes) == 0 {
		return invalid(name, v, " has no entry").WithHint(scopeHint)
	}
	return nil
}

// addScopes limits what the clients of a listener may do. It returns what is wrong
// with the entry, or "".
func (o *Options) addScopes(scopes, address string) string {
	parsed, err := scope.Parse(scopes)
	if err != nil {
		return err.Error()
	}
	name, why := listenerName(address)
	if why != "" {
		return why
	}
	if slices.ContainsFunc(o.Setup.Scopes, func(entry string) bool { return strings.HasSuffix(entry, "="+name) }) {
		return address + " has scopes already"
	}
	if len(o.Setup.Scopes) == work.MaxScopes {
		return "too many addresses have scopes"
	}
	o.Setup.Scopes = append(o.Setup.Scopes, parsed.String()+"="+name)
	return ""
}

// listenerName returns the name that the listener on an address will have
// (ipc.Listening), or why the name is not known before the gateway listens.
func listenerName(address string) (name, why string) {
	e, err := endpoint.Parse(address)
	if err != nil {
		return "", err.Error()
	}
	if e.Network == ipc.Unix {
		return address, ""
	}
	if e.Port == 0 {
		return "", "an address with scopes needs a port"
	}
	ip := netip.IPv6Unspecified()
	if e.Host != "" {
		if ip, err = netip.ParseAddr(e.Host); err != nil {
			return "", "an address with scopes is a number, such as 127.0.0.1, because a name may have several"
		}
	}
	return netip.AddrPortFrom(ip, e.Port).String(), ""
}
