package ctld

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/rpc/server"
)

// schedUser finds the user that SchedUser names; none is root.
func schedUser(c *conf.Cluster) (become.User, error) {
	if c.User == "" {
		return become.User{Name: "root"}, nil
	}
	u, _, err := become.ParseUser(c.User)
	return u, errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", c.User)
}

// configure makes of the configuration what the controller and its server are told.
func configure(c *conf.Cluster, user become.User, version string, log *slog.Logger) (Config, func(string, string) (server.Identity, error), error) {
	if len(c.Controllers) == 0 {
		return Config{}, nil, errs.New(errs.Invalid, "%s names no controller", c.Path).WithHint("SchedctldHost=NAME")
	}
	cfg := Config{
		State: c.StateSaveLocation, Cluster: c.ClusterName, Address: c.Controllers[0].Address, Port: c.ControllerPort,
		Version: version, SchedUser: user.UID, Log: log,
	}
	if cfg.State == "" {
		return cfg, nil, errs.New(errs.Invalid, "%s does not say where the controller keeps its state", c.Path).WithHint("StateSaveLocation=PATH")
	}
	var err error
	if cfg.Partitions, err = ReadPartitions(c.Partitions); err != nil {
		return cfg, nil, err
	}
	if err := cfg.readNode(c.Nodes); err != nil {
		return cfg, nil, err
	}
	key, verify, err := verifier(c, user, log)
	if err != nil {
		return cfg, nil, err
	}
	if key != nil {
		cfg.Tokens = &Tokens{Key: *key, Private: c.DisableTokenCreation, Longest: c.MaxTokenLifespan}
	}
	switch {
	case c.Accounting == nil:
	case key == nil:
		return cfg, nil, errs.New(errs.Invalid, "%s: the accounting daemon takes tokens alone, and there is no key to make one with", c.Path).
			WithHint("AuthAltTypes=auth/jwt and AuthAltParameters=jwt_key=PATH")
	default:
		cfg.Accounting = newLedger(c, *key)
	}
	return cfg, verify, nil
}

// verifier is how tokens are judged; nil when the configuration has no auth/jwt.
func verifier(c *conf.Cluster, user become.User, log *slog.Logger) (*auth.Key, func(token, actAs string) (server.Identity, error), error) {
	switch {
	case c.AuthType != "auth/cred":
		return nil, nil, errs.New(errs.Unsupported, "%s: AuthType=%s is for Slurm's own daemons", c.Path, c.AuthType).WithHint("AuthType=auth/cred")
	case !c.JWT && c.AuthSocket == "":
		return nil, nil, errs.New(errs.Invalid, "%s: nobody could say who he is", c.Path).
			WithHint("AuthInfo=socket=PATH for users of this machine, AuthAltTypes=auth/jwt for tokens")
	case !c.JWT:
		return nil, nil, nil
	case c.JWTKey == "":
		return nil, nil, errs.New(errs.Invalid, "%s: AuthAltTypes=auth/jwt without a key", c.Path).WithHint("AuthAltParameters=jwt_key=PATH")
	}
	key, err := auth.LoadKey(c.JWTKey, user.UID, uint32(os.Geteuid()))
	if err != nil {
		return nil, nil, err
	}
	for _, w := range key.Warnings() {
		log.Warn(w)
	}
	tokens := auth.Verifier{Key: key, UserClaimField: c.UserClaimField}
	authority := &server.Authority{
		Token: func(token string) (string, time.Time, error) {
			claims, err := tokens.Verify(token)
			return claims.User, claims.Expires, err
		},
		Lookup: func(name string) (uint32, uint32, error) {
			u, err := become.LookupUser(name)
			return u.UID, u.GID, err
		},
		Super: func(uid uint32) bool { return uid == 0 || uid == user.UID },
	}
	return &key, authority.Verify, nil
}

// readNode takes from NodeName= lines what is about this machine: its name, and how much of
// it jobs may use. A line is about it when it is the only one, or has its host name.
func (cfg *Config) readNode(lines []conf.Line) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	for _, line := range lines {
		name, _ := line.Get("NodeName")
		if name == "DEFAULT" || name != host && len(lines) > 1 {
			continue
		}
		cfg.Node = name
		for key, to := range map[string]func(uint64){
			"CPUs":       func(n uint64) { cfg.CPUs = int(n) },
			"RealMemory": func(n uint64) { cfg.Memory = n },
		} {
			v, ok := line.Get(key)
			if !ok {
				continue
			}
			n, err := strconv.ParseUint(v, 10, 31)
			if err != nil || n == 0 {
				return errs.New(errs.Invalid, "%s:%d: %s=%s is not a number above 0", line.File, line.Number, key, v)
			}
			to(n)
		}
	}
	return nil
}
