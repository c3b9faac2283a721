package plan

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"schedrestd/become/subuid"
	"schedrestd/conf"
	"schedrestd/gateway/plan/option"
	"schedrestd/internal/errs"
	"schedrestd/internal/loglevel"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/rpc/tlsconn"
)

// A planner makes a Plan from the options and the configuration.
type planner struct {
	source
	defaultLevel slog.Level // default log level
	level        slog.LevelVar
	cluster      *conf.Cluster // read by read
	ca           []byte        // the CAs of its daemons; nil without TLS
}

func newPlanner(o options, from origin, errOut io.Writer) *planner {
	p := &planner{source: source{o: o, from: from, path: from.path}, defaultLevel: slog.LevelInfo}
	if from.servers == nil && !filepath.IsAbs(p.path) {
		p.path = filepath.Join(o.start.Directory, p.path)
	}
	p.level.Set(o.Level(p.defaultLevel, nil))
	p.log = loglevel.New(o.Setup.Log, errOut, &p.level)
	return p
}

// plan reads the configuration and returns a Plan for it.
func (p *planner) plan() (*query.WholePlan, error) {
	p.level.Set(p.o.Level(p.defaultLevel, nil))
	if !p.o.start.Reload {
		if p.o.Verbose > option.MaxVerbosity {
			p.log.Warn("option -v repeated more than six times", "given", int(p.o.Verbose))
		}
		option.WarnUnknown(os.Environ(), p.log)
		for _, setting := range p.o.WithoutEffect {
			p.log.Warn("environment setting without effect", "setting", option.AsSet(setting))
		}
		if p.o.FallbackServer != nil && p.from.servers == nil {
			p.log.Info(option.AsSet("SCHED_CONF_SERVER")+" has no effect, because there is a configuration file", "path", p.path)
		}
	}
	plan, ineffective, err := p.read()
	if errs.KindOf(err) == errs.Denied && p.o.start.Root && p.o.start.Reload {
		// After the parent has opened the listeners, it drops CAP_DAC_OVERRIDE.
		// So a reload can read fewer files than the gateway can read when it
		// starts.
		return nil, &errs.Error{Kind: errs.Denied, Err: err,
			Message: "the running parent can only reread files that root may read without privileges",
			Hint:    "make root the owner of the file, or restart the gateway"}
	}
	if err != nil {
		return nil, err
	}
	p.level.Set(slog.Level(plan.LogLevel))
	for _, key := range staleSettings(p.o.start, plan) {
		p.log.Warn("configuration change needs a restart", "key", key, "configuration", p.path)
	}
	plan.Ranges, plan.ReplaceSubuids = p.o.subordinates(subuid.RangesFile, subuid.UsersFile, p.log)
	if p.o.start.Root && !p.o.start.Reload {
		if plan.Users, err = systemUsers.roleUsers(plan.Ranges, p.log); err != nil {
			return nil, err
		}
		if plan.Mode == ipc.ModeServe {
			logUsers(plan.Users, p.log)
		}
	}
	s := plan.Setup
	warnTokens(plan, p.cluster, p.log)
	warnFewFiles(plan, p.log)
	warnLittleMemory(plan, memoryLimit("/"), p.log)
	p.log.Log(context.Background(), loglevel.Verbose, "configuration", "path", p.path, "cluster", s.Cluster,
		"jwt", s.JWT, "local", s.Local, "data_parsers", s.Parsers, "controllers", s.Controllers, "accounting", s.Accounting)
	if len(ineffective) > 0 {
		p.log.Log(context.Background(), loglevel.Verbose, "debug flags have no effect here", "flags", ineffective)
	}
	return plan, nil
}

// warnTokens warns if the gateway accepts tokens that an administrator may not
// expect.
func warnTokens(plan *query.WholePlan, cluster *conf.Cluster, log *slog.Logger) {
	s := &plan.Setup
	if !s.JWT {
		return
	}
	if cluster.CanRenewTokens() {
		log.Info("tokens can be exchanged for others that expire later", "max_token_lifespan", cluster.MaxTokenLifespan,
			"hint", "AuthAltParameters=disable_token_creation in the controller's configuration prevents this")
	}
	if cluster.JWKS != "" && (s.Issuer == "" || s.Audience == "") {
		log.Warn("tokens of the identity provider are accepted even if they were made for other applications",
			"hint", "set SCHEDRESTD_TOKEN_ISSUER and SCHEDRESTD_TOKEN_AUDIENCE")
	}
	if cluster.JWKS == "" && s.Issuer+s.Audience+s.ScopeClaim != "" {
		log.Warn("the rules for tokens of an identity provider do not apply to those of jwt_key=, which permit everything",
			"hint", "there is no jwks= in the configuration; remove the variables SCHEDRESTD_TOKEN_, or add it to AuthAltParameters=")
	}
	if s.UserClaim != "" && !s.OneUser {
		log.Warn("the claims sun and username of a token precede that of userclaimfield=", "userclaimfield", s.UserClaim,
			"hint", "users must not be able to choose their values; SCHEDRESTD_SECURITY=one_user_claim refuses tokens in which they differ")
	}
}

// staleSettings returns the names of the settings that have changed since the
// gateway started, and that a reload can't change in a running parent.
func staleSettings(start ipc.ConfigSetup, plan *query.WholePlan) (list []string) {
	if start.Reload && plan.Service.SchedUID != start.SchedUID {
		list = append(list, "SchedUser")
	}
	if start.Reload && hasNetwork(plan.Listen, ipc.Unix) && plan.SocketMode != start.SocketMode {
		list = append(list, "AuthAltTypes (for the mode of UNIX sockets)")
	}
	return list
}

// read makes a Plan from the current files. The result ineffective lists the
// debug flags that have no effect.
func (p *planner) read() (plan *query.WholePlan, ineffective []string, err error) {
	cluster, err := p.configuration()
	if err != nil {
		return nil, nil, err
	}
	p.cluster = cluster
	plan, err = p.o.plan(cluster, p.o.Level(p.defaultLevel, cluster), p.mode, p.log)
	if err != nil {
		return nil, nil, err
	}
	plan.Path = p.path
	plan.Setup.TLS.CA = p.ca
	return plan, option.IneffectiveFlags(p.o.EffectiveDebugFlags(cluster)), nil
}

// configuration reads the cluster's configuration and logs its warnings.
func (p *planner) configuration() (*conf.Cluster, error) {
	cluster, warnings, err := p.readConfiguration()
	for _, w := range warnings {
		p.log.Warn(w.String())
	}
	if err != nil {
		return nil, err
	}
	path, text, err := p.o.reader().ReadCA(cluster)
	if err == nil && cluster.SecureRPC {
		p.ca, err = tlsconn.ParseCA(path, text, time.Now())
	}
	if err != nil {
		return nil, err
	}
	if _, err := schedUser(cluster); userAbsent(cluster, err) {
		p.log.Warn("cluster user not found; it can own no file or socket here", "error", err)
	}
	return cluster, p.o.checkTrust(cluster)
}
