package ctld

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"schedrestd/auth"
	"schedrestd/become/nss"
	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/internal/errs"
)

// configure derives the controller's Config from the configuration file.
func configure(c *conf.Cluster, user nss.User, key *auth.Key, version string, log *slog.Logger) (Config, error) {
	if len(c.Controllers) == 0 {
		return Config{}, errs.New(errs.Invalid, "%s names no controller", c.Path).WithHint("set SchedctldHost=NAME")
	}
	cfg := Config{
		StateDir: c.StateSaveLocation, Cluster: c.ClusterName, Address: c.Controllers[0].Address, Port: c.ControllerPort,
		Version: version, SchedUser: user.UID, Private: c.PrivateData, KeptLimits: c.KeptLimits, KillWait: c.KillWait, Log: log,
	}
	if cfg.StateDir == "" {
		return cfg, errs.New(errs.Invalid, "%s names no state directory", c.Path).WithHint("set StateSaveLocation=PATH")
	}
	var err error
	if cfg.ConfigFiles, err = configFiles(c); err != nil {
		return cfg, err
	}
	if cfg.Partitions, err = readPartitions(c.Partitions); err != nil {
		return cfg, err
	}
	if err := cfg.readNode(c.Nodes); err != nil {
		return cfg, err
	}
	switch {
	case key != nil:
		cfg.Tokens = &Tokens{Key: *key, AdminOnly: c.DisableTokenCreation, MaxLifespan: c.LifespanLimit()}
	case c.JWT:
		// The site's identity provider issues the tokens. This controller also
		// creates tokens if the administrator sets jwt_key.
		log.Info("token creation disabled", "reason", "AuthAltParameters has jwks and no jwt_key")
	}
	if c.Accounting != nil {
		if cfg.Accounting, err = newLedger(c, key, daemon.Super(user.UID)); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// readNode reads the NodeName= line of this machine: the node's name, CPUs and
// memory. If there are several lines, readNode uses the line with the machine's
// host name.
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
		for key, set := range map[string]func(uint64){
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
			set(n)
		}
	}
	return nil
}
