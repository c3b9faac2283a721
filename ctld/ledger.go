package ctld

import (
	"context"
	"net"
	"strconv"
	"time"

	"schedrestd/auth"
	"schedrestd/conf"
	"schedrestd/daemon"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// ledger is the accounting daemon, as the controller's own user.
//
// It may be root who speaks here, and whoever listens where the accounting daemon should could
// make use of what he is told. So the UNIX socket is asked only after the kernel has said that
// an administrator serves it, and tells nothing but who asks; with it there is no other
// way. Over TCP, where nobody says who listens, goes a ticket (daemon.Ticket), which is
// good for recording jobs alone.
type ledger struct {
	client *client.Accounting
	key    *auth.Key // for tickets; nil: over the UNIX socket
}

// recordTimeout is for one batch, and for the life of the ticket that goes with it.
const recordTimeout = 30 * time.Second

// newLedger finds the way to the accounting daemon. super tells whose daemon it may be.
func newLedger(c *conf.Cluster, key *auth.Key, super func(uid uint32) bool) (*ledger, error) {
	cfg := client.Config{Cluster: c.ClusterName, Timeout: recordTimeout, Trusted: super}
	if path := c.Accounting.Socket; path != "" {
		cfg.Accounting = []client.Address{{Name: c.Accounting.Host, Network: "unix", Address: path}}
		return &ledger{client: client.NewAccounting(cfg)}, nil
	}
	if key == nil {
		return nil, noTickets(c)
	}
	for _, host := range []string{c.Accounting.Host, c.Accounting.BackupHost} {
		if host != "" {
			cfg.Accounting = append(cfg.Accounting, client.Address{Name: host, Network: "tcp", Address: net.JoinHostPort(host, strconv.Itoa(c.Accounting.Port))})
		}
	}
	return &ledger{client: client.NewAccounting(cfg), key: key}, nil
}

// noTickets is why the accounting daemon can't be asked by TCP, and the two ways out.
func noTickets(c *conf.Cluster) error {
	why, way := "this cluster has no jwt_key", "AuthAltTypes=auth/jwt and AuthAltParameters=jwt_key=PATH"
	if c.JWT && c.JWKS != "" {
		why, way = "the key set in jwks= cannot sign", "jwt_key=PATH beside jwks= in AuthAltParameters="
	}
	return errs.New(errs.Invalid, "%s: accounting over TCP requires tokens, and %s", c.Path, why).
		WithHint("set AccountingStorageSocket=PATH for an accounting daemon on this machine, or %s with the same key in both daemons", way)
}

// Record sends jobs.
func (l *ledger) Record(ctx context.Context, jobs []model.Job) error {
	var cred model.Credential
	if l.key != nil {
		var err error
		if cred.Token, err = daemon.Ticket(*l.key, 2*recordTimeout); err != nil {
			return err
		}
	}
	return l.client.RecordJobs(ctx, cred, jobs)
}
