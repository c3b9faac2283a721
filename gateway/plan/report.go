package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/conf"
	"schedrestd/gateway/plan/option"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/internal/fips"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/rpc/tlsconn"
)

// printReport prints what the gateway would use, for --check. It prints no
// secrets. The argument logTo describes the destination of the log.
func (o *options) printReport(out io.Writer, plan *query.WholePlan, cluster *conf.Cluster, from origin, logTo string) {
	var page entries
	row := func(name, format string, args ...any) {
		page = append(page, feature.Entry{Name: name, About: fmt.Sprintf(format, args...)})
	}
	s := &plan.Setup
	row("configuration", "%s", strings.Join(filesOr(cluster.Files, plan.Path), ", "))
	if from.servers != nil {
		row("copy", "%s", o.describeCopy(from))
	}
	row("variables", "%s", cmp.Or(strings.Join(option.SetVariables(os.Environ()), ", "), "none"))
	row("cluster", "%s", cmp.Or(s.Cluster, "without a name"))
	row("controllers", "%s", describeAddresses(slices.Concat(s.Front, s.Controllers)))
	row("accounting", "%s", describeAddresses(s.Accounting))
	row("daemons", "%s", describeDaemonTLS(s.TLS))
	row("API", "%s", o.describeAPI(s))
	row("deprecated", "%s", cmp.Or(describeDeprecated(s.Deprecated), "no version"))
	row("tokens", "%s", describeTokens(plan))
	row("lifespan", "%s", describeLifespan(&cluster.Auth, s.JWT))
	row("unknown users", "%s", describeUnknown(plan))
	row("local users", "%s", describeLocal(plan))
	row("addresses", "%s", cmp.Or(strings.Join(o.Listen, ", "), "those that the service manager opens"))
	row("scopes", "%s", cmp.Or(strings.Join(s.Scopes, ", "), "every address permits everything"))
	row("web pages", "%s", cmp.Or(strings.Join(s.Origins, ", "), "only the gateway's own"))
	if s.Local {
		row("host names", "%s", strings.Join(append([]string{"localhost"}, slices.DeleteFunc(slices.Clone(s.Hosts), func(name string) bool { return name == "localhost" })...), ", "))
	}
	row("TLS", "%s", describeTLS(plan.Secrets.TLS))
	row("cryptography", "%s", describeModule(fips.Module()))
	row("metrics", "%s", cmp.Or(o.Metrics, "off"))
	row("runs as", "%s", o.describeService(plan))
	row("limits", "connections=%d workers=%d threads=%d body=%d", plan.Numbers.Connections, plan.Numbers.Workers, plan.Numbers.Threads, s.Limits.Body)
	row("rate", "%s", describeRate(s.Admission))
	row("security", "%s", cmp.Or(strings.Join(o.SetSwitches(), ", "), "no switches"))
	row("output", "%s", describeOutput(plan))
	row("log", "%s", logTo)
	row("audit log", "%s", cmp.Or(plan.Audit.Path, "off"))
	keys := cmp.Or(plan.Audit.Claims, "off")
	if plan.Setup.SearchKeys {
		keys += ", and jobs of earlier requests are looked for in the cluster"
	}
	row("idempotency", "%s", keys)
	page.print(out)
}

// describeLog returns where the log is written, and whether the socket exists.
func (o *options) describeLog() string {
	format, path, _ := strings.Cut(o.Setup.Log, ":")
	switch {
	case path == "":
		return cmp.Or(format, "text") + ", to standard error"
	case !o.host.Exists(path):
		return fmt.Sprintf("%s, but there is no %s: lines would be written to standard error", format, path)
	}
	return fmt.Sprintf("%s, to %s", format, path)
}

// checkAddresses returns an error if this machine has none of the addresses of a
// listener. It binds no port on which a running gateway may listen.
func (o *options) checkAddresses(list []ipc.Listen) error {
	for _, l := range list {
		if len(l.Addresses) > 0 && !slices.ContainsFunc(l.Addresses, isLocal) {
			return errs.New(errs.Unavailable, "listen on %s: %v", l.Text, unix.EADDRNOTAVAIL).
				WithHint("there is no such address: ip addr shows those of this machine")
		}
	}
	return nil
}

// isLocal reports whether this machine has the address, as far as this process
// can find out.
func isLocal(a netip.AddrPort) bool {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a.Addr(), 0)))
	if err == nil {
		c.Close()
	}
	return !errors.Is(err, unix.EADDRNOTAVAIL)
}

// describeCopy returns which copy of the configuration a start without a
// controller would use.
func (o *options) describeCopy(from origin) string {
	cache := o.cache(from)
	_, age, err := cache.Load(from.servers)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "none in " + cache.Dir
	case err != nil:
		return "not usable: " + err.Error()
	}
	return fmt.Sprintf("in %s, %s old", cache.Dir, age.Round(time.Second))
}

// filesOr returns the files of a configuration. There are none for /dev/null,
// whose path is returned instead.
func filesOr(files []string, path string) []string {
	if len(files) == 0 {
		return []string{path}
	}
	return files
}

// describeAddresses returns the addresses of daemons, each with the host's name.
func describeAddresses(list []work.Address) string {
	var texts []string
	for _, a := range list {
		_, port, named := a.Named()
		switch {
		case a.Network == "unix":
			texts = append(texts, "unix:"+a.Address)
			continue
		case named && len(a.Resolved) == 0:
			texts = append(texts, a.Address+", which can't be resolved")
			continue
		case !named:
			var ip string
			ip, port, _ = net.SplitHostPort(a.Address)
			a.Resolved = []netip.Addr{netip.MustParseAddr(ip)}
		}
		for _, addr := range a.Resolved {
			text := net.JoinHostPort(addr.String(), port)
			if a.Name != addr.String() {
				text = a.Name + " at " + text
			}
			texts = append(texts, text)
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// describeDaemonTLS returns how the daemons are reached.
func describeDaemonTLS(t work.TLS) string {
	if len(t.CA) == 0 {
		return "reached without TLS"
	}
	text := "reached with TLS; CA " + tlsconn.DescribeCA(t.CA)
	if t.CheckNames {
		text += "; names are compared"
	}
	return text
}

// describeAPI returns the beginnings of the paths, and the API versions.
func (o *options) describeAPI(s *work.Setup) string {
	var versions, paths []string
	for _, p := range s.Parsers {
		versions = append(versions, feature.Parser{Version: p.Version, Flags: feature.Flags(p.Flags)}.Plugin())
	}
	for i, name := range []string{"sched", "slurm"} {
		if s.Names&[]work.Names{work.NamesSched, work.NamesSlurm}[i] == 0 {
			continue
		}
		if s.Content&work.ContentController != 0 {
			paths = append(paths, "/"+name+"/")
		}
		if s.Content&work.ContentAccounting != 0 {
			paths = append(paths, "/"+name+"db/")
		}
	}
	return strings.Join(paths, ", ") + "; " + strings.ReplaceAll(strings.Join(versions, ", "), "data_parser/", "")
}

// describeDeprecated returns the versions that are announced as deprecated, as
// SCHEDRESTD_DEPRECATED lists them.
func describeDeprecated(list []work.Deprecation) string {
	var texts []string
	for _, d := range list {
		text := feature.Parser{Version: d.Version}.Name()
		for _, day := range []uint64{d.Since, d.Sunset} {
			if day != 0 {
				text += ":" + time.Unix(int64(day), 0).UTC().Format(time.DateOnly)
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// describeTokenMode returns what the daemons get in place of a gateway token, and what
// this withstands.
func describeTokenMode(s *work.Setup) string {
	switch {
	case s.Credentials.IsZero():
		return "in place of which the daemons get tokens of 30 seconds (bearer): scopes do not hold against a captured worker"
	case s.Credentials.Signed:
		return "in place of which the daemons get a credential of auth/slurm for each message, which the keeper signs (signed): scopes hold against a captured worker, but slurmdb.read and slurmdb.write are not told apart; a captured keeper can act as any user"
	case len(s.Credentials.Sack) > 0:
		return "in place of which the daemons get a credential of auth/slurm for each message (bound): scopes hold against a captured worker, but slurmdb.read and slurmdb.write are not told apart"
	}
	return "in place of which the daemons get a credential of MUNGE for each message (bound): scopes hold against a captured worker, but slurmdb.read and slurmdb.write are not told apart"
}

// describeTokens returns whether tokens are accepted, and how they are verified.
func describeTokens(plan *query.WholePlan) string {
	t, s := plan.Secrets.Tokens, &plan.Setup
	if !s.JWT {
		return "not accepted"
	}
	var texts []string
	switch {
	case s.ClientIDsOnly:
		texts = append(texts, "they need the claims of an identity")
	case s.ClientIDs:
		texts = append(texts, "they may have the claims of an identity")
	}
	if t.Key == "" && t.JWKS == "" {
		texts = append(texts, "the daemons verify them")
	}
	if t.Key != "" {
		texts = append(texts, "key "+t.Key+", if the gateway can read it, as the log says; otherwise the daemons verify")
	}
	if t.JWKS != "" {
		texts = append(texts, "public keys "+t.JWKS)
	}
	if t.JWKS != "" {
		texts = append(texts, "of iss "+cmp.Or(s.Issuer, "any")+", aud "+cmp.Or(s.Audience, "any")+", scopes "+cmp.Or(s.ScopeClaim, "all"))
	}
	if s.Register != "" {
		texts = append(texts, "gateway tokens by "+s.Register+", "+describeTokenMode(s)+", and which clients can create for "+describeLifetime(s.TokenLifetime))
	}
	return "accepted; " + strings.Join(texts, "; ")
}

// describeLifetime returns for how long a gateway token that a client creates is valid.
func describeLifetime(d time.Duration) string {
	if d == 0 {
		return "as long as their token is valid"
	}
	return "up to " + d.String()
}

// describeLifespan returns whether a token can be exchanged for one that expires
// later.
func describeLifespan(a *conf.Auth, tokens bool) string {
	const remedy = "; AuthAltParameters=disable_token_creation prevents this"
	switch {
	case !tokens:
		return "no tokens"
	case !a.CanRenewTokens():
		return "a token can't be exchanged for one that expires later"
	case a.MaxTokenLifespan > 0:
		return fmt.Sprintf("anyone who has a token can exchange it for one of %d seconds, again and again%s", a.MaxTokenLifespan/time.Second, remedy)
	}
	return "anyone who has a token can exchange it for one of any lifespan" + remedy
}

// describeUnknown returns what happens to users of tokens that this machine does
// not know.
func describeUnknown(plan *query.WholePlan) string {
	if plan.Setup.PassUnknown {
		return "left to the daemons"
	}
	return "refused"
}

// describeLocal returns which local users need no token.
func describeLocal(plan *query.WholePlan) string {
	switch {
	case !plan.Setup.Local:
		return "not accepted without a token"
	case plan.Switches.BecomeUser:
		return "accepted at UNIX sockets, each with workers of their own"
	}
	return "accepted at UNIX sockets, if they are the user of the gateway"
}

// describeOutput returns who can read the output of jobs.
func describeOutput(plan *query.WholePlan) string {
	switch {
	case !plan.Switches.Output:
		return "not read"
	case plan.Switches.BecomeUser:
		return "read by each connected user, of their own jobs"
	case plan.Setup.TokenOutput:
		return "read by each user with a token that jwt_key= or jwks= verifies, of their own jobs"
	}
	return "read by the user of the gateway, of their own jobs"
}

// describeModule returns the implementation of cryptography.
func describeModule(fipsModule string) string {
	if fipsModule == "" {
		return "Go's, not in FIPS 140-3 mode"
	}
	return "FIPS 140-3 mode, Go Cryptographic Module " + fipsModule
}

// describeTLS returns the files of TLS.
func describeTLS(t ipc.TLS) string {
	switch {
	case t.Key == "" && t.Certificate == "":
		return "off"
	case t.Key == "" || t.Certificate == "":
		return "off, because TLSParameters= has only one of restd_cert_file and restd_cert_key_file"
	}
	text := "certificate " + t.Certificate + ", key " + t.Key
	if t.ClientCA != "" {
		text += ", clients need a certificate of " + t.ClientCA
	}
	return text
}

// describeService returns the user that the workers run as. If an ordinary user
// starts the gateway, -g does not change the user, who is also this process's.
func (o *options) describeService(plan *query.WholePlan) string {
	switch s := plan.Service; {
	case plan.Switches.BecomeUser:
		return "the connecting users"
	case s.HasGroup && !s.HasUser && !o.start.Root:
		return fmt.Sprintf("the user who starts it (uid %d, gid %d)", os.Geteuid(), s.GID)
	case s.HasUser || s.HasGroup:
		return fmt.Sprintf("%s (uid %d, gid %d)", cmp.Or(s.Name, "this user"), s.UID, s.GID)
	}
	return "the user who starts it"
}

// describeRate returns the limit on the rate of requests.
func describeRate(a work.Admission) string {
	if a.Rate == 0 {
		return "no limit"
	}
	return fmt.Sprintf("%d requests per second of one user, %d at once", a.Rate, a.Burst)
}
