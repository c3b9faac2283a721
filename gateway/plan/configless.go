package plan

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/gateway/fetcher"
	"schedrestd/internal/errs"
	"schedrestd/rpc/confserver"
	"schedrestd/rpc/munge"
)

// An origin is where the configuration comes from: a file, or controllers that
// send it.
type origin struct {
	path    string             // of the file
	servers confserver.Servers // instead of a file; nil if there is one
	ca      []byte             // text of the file of CAs that sign the certificates of servers; nil without TLS
}

// findConfiguration returns where the configuration comes from. The order is
// that of Slurm's commands, in which a file precedes SLURM_CONF_SERVER. Like
// slurmd, this program also has an option for the controllers, which precedes
// the files at the usual places.
func (o *options) findConfiguration() (origin, error) {
	if o.ConfServer != nil && o.Conf != "" {
		return origin{}, errs.New(errs.Invalid, "-f and --conf-server exclude each other")
	}
	if o.ConfServer != nil {
		return o.fromServers(o.ConfServer)
	}
	path, err := o.reader().Find(o.Conf)
	if errs.KindOf(err) == errs.NotFound && o.FallbackServer != nil {
		return o.fromServers(o.FallbackServer)
	}
	return origin{path: path}, err
}

func (o *options) fromServers(servers confserver.Servers) (origin, error) {
	if o.Run.ControllerNetns != "" {
		return origin{}, errs.New(errs.Invalid, "SCHEDRESTD_CONTROLLER_NETNS: the configuration can't be fetched from another network namespace").
			WithHint("start sackd in that namespace, which stores the file in /run/slurm/conf, or copy slurm.conf to this machine")
	}
	if o.ConfCA == "" {
		return origin{servers: servers}, nil
	}
	text, err := o.reader().ReadAuthorities(o.ConfCA)
	return origin{servers: servers, ca: text}, errs.Wrap(err, errs.KindOf(err), "environment: SCHEDRESTD_CONF_CA")
}

// Time limits of fetching the configuration.
const (
	fetchLimit = 30 * time.Second
	recentCopy = time.Minute // in inetd mode, a copy of at most this age is used, so that not every client causes a request
)

// A source reads the configuration for the options o.
type source struct {
	o    options
	from origin
	path string // of the configuration, for messages
	mode mode
	log  *slog.Logger
}

// readConfiguration reads the configuration from a file or from the controllers.
func (s *source) readConfiguration() (*conf.Cluster, []conf.Warning, error) {
	if s.from.servers == nil {
		return s.o.reader().Read(s.path)
	}
	sent, isCopy, err := s.fetch()
	if err != nil {
		return nil, nil, err
	}
	sent.CA = s.o.ConfCA
	s.path = sent.Path(conf.MainFile)
	c, warnings, err := conf.ReadSent(sent)
	if err == nil && !isCopy {
		s.keep(sent, c.Sent)
	}
	return c, warnings, err
}

// cache returns the directory for copies of a configuration from a given origin.
func (o *options) cache(from origin) confserver.Cache {
	return confserver.Cache{Dir: cmp.Or(o.ConfCache, become.ConfigCache), CA: from.ca}
}

// fetch fetches the configuration from the controllers. If none of them answers
// when the gateway starts, fetch returns the copy of the last answer. At a
// reload, it returns an error instead: the gateway already has a configuration.
// If a controller answers, but with a refusal, this is an error, too.
func (s *source) fetch() (sent conf.Sent, isCopy bool, err error) {
	if s.mode != listening {
		if sent, age, err := s.o.cache(s.from).Load(s.from.servers); err == nil && age <= recentCopy {
			return copyOf(sent), true, nil
		}
	}
	token, err := s.o.confToken()
	if err != nil {
		return conf.Sent{}, false, errs.Wrap(err, errs.KindOf(err), "environment: SCHEDRESTD_CONF_TOKEN")
	}
	left := tokenLife(token)
	const renew = "renew the file with a timer: scontrol token username=NAME lifespan=SECONDS"
	if left > 0 && left < soonExpired {
		s.log.Warn("token for the configuration expires soon, and then no start is possible", "file", s.o.ConfToken, "in", left, "hint", renew)
	}
	if sent, err = s.request(token); err == nil {
		s.log.Info("configuration fetched", "from", sent.Origin)
		return sent, false, nil
	}
	if left < 0 {
		err = errs.New(errs.KindOf(err), "%v; the token in %s expired %s ago", err, s.o.ConfToken, -left).WithHint(renew)
	}
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Timeout, errs.BadAnswer:
	default:
		return conf.Sent{}, false, err
	}
	if s.o.start.Reload {
		return conf.Sent{}, false, err
	}
	sent, age, copyErr := s.o.cache(s.from).Load(s.from.servers)
	if copyErr != nil {
		if !errors.Is(copyErr, fs.ErrNotExist) {
			s.log.Warn("copy of the configuration not usable", "error", copyErr)
		}
		return conf.Sent{}, false, err
	}
	s.log.Warn("no controller sends the configuration; using the copy of an earlier start", "from", sent.Origin, "age", age.Round(time.Second), "error", err)
	return copyOf(sent), true, nil
}

// request requests the configuration from the controllers.
func (s *source) request(token string) (conf.Sent, error) {
	task, err := confserver.Prepare(confserver.Options{Servers: s.from.servers, Token: token, Munge: munge.DefaultSocket, Sack: s.o.anySackSockets(), Log: s.log})
	if err != nil {
		return conf.Sent{}, err
	}
	program, err := s.o.host.OpenWorker()
	if err != nil {
		return conf.Sent{}, err
	}
	defer program.Close()
	return fetcher.Fetch(fetchLimit, task, fetcher.Options{Program: program, Log: s.log,
		CAFile: s.o.ConfCA, CA: s.from.ca, CheckNames: s.o.Setup.TLS.CheckNames,
		Audit: s.o.Run.Switches.AuditConfinement, Require: s.o.Run.Switches.RequireConfinement})
}

// copyOf marks the files of sent as copies, so that errors and warnings about
// them say so.
func copyOf(sent conf.Sent) conf.Sent {
	sent.Origin = "copy of " + sent.Origin
	return sent
}

// keep stores a copy of the configuration for a start without a controller. The
// gateway can also run without a copy.
func (s *source) keep(sent conf.Sent, used []string) {
	switch err := s.o.cache(s.from).Store(s.from.servers, sent, used); {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		s.log.Info("no copy of the configuration is kept: the directory does not exist", "directory", s.o.cache(s.from).Dir)
	default:
		s.log.Warn("no copy of the configuration is kept", "error", err)
	}
}

// soonExpired is how long before its expiry a token causes a warning.
const soonExpired = 3 * 24 * time.Hour

// tokenLife returns how long the token is still valid, which is negative if it
// has expired, or 0 if it does not say. The controller decides: its clock may
// differ.
func tokenLife(token string) time.Duration {
	_, payload, _ := strings.Cut(token, ".")
	payload, _, _ = strings.Cut(payload, ".")
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if text, err := base64.RawURLEncoding.DecodeString(payload); err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires == 0 {
		return 0
	}
	return time.Until(time.Unix(claims.Expires, 0)).Round(time.Second)
}

// maxToken limits the length of a token, in bytes.
const maxToken = 64 << 10

// confToken reads the token for fetching the configuration. It returns "" if no
// file is named. The file may contain the output of "scontrol token".
func (o *options) confToken() (string, error) {
	if o.ConfToken == "" {
		return "", nil
	}
	f, err := o.host.Open(o.ConfToken)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o037 != 0 {
		return "", errs.New(errs.Denied, "%s: others can read the token", o.ConfToken).WithHint("chmod 0600 %s", o.ConfToken)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	for _, name := range []string{"SCHED_JWT=", "SLURM_JWT="} {
		token = strings.TrimPrefix(token, name)
	}
	if token == "" || strings.ContainsAny(token, " \t\n") {
		return "", errs.New(errs.Invalid, "%s contains no token", o.ConfToken).WithHint("scontrol token >%s", o.ConfToken)
	}
	return token, nil
}
