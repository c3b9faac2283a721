package ctld

import (
	"context"
	"net"
	"strconv"
	"time"

	"schedrestd/auth"
	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// A ledger sends job records to the accounting daemon. It acts as the user that
// the controller runs as.
//
// That user may be root. So a program that listens in place of the accounting
// daemon must not receive a credential that the program could misuse. If a UNIX
// socket is configured, the controller uses only that socket and sends no
// credential. It sends records only if the kernel reports that the process at
// the other end of the socket runs as an administrator. Over TCP the controller
// can't identify the server. So it sends a ticket (daemon.Ticket), which is
// valid only for recording jobs.
type ledger struct {
	client *client.Accounting
	key    *auth.Key // for tickets; nil if the UNIX socket is used
}

// recordTimeout limits the time for sending one batch. A ticket is valid for
// twice this time.
const recordTimeout = 30 * time.Second

// newLedger returns a ledger for the configured address. The function super
// reports whether a process with the given uid may serve the UNIX socket.
func newLedger(c *conf.Cluster, key *auth.Key, super func(uid uint32) bool) (*ledger, error) {
	cfg := client.Config{Cluster: c.ClusterName, Timeout: recordTimeout, LongTimeout: recordTimeout, Trusted: super}
	if path := c.Accounting.Socket; path != "" {
		cfg.Accounting = []client.Address{{Name: c.Accounting.Host, Network: "unix", Address: path}}
		return &ledger{client: client.NewAccounting(cfg)}, nil
	}
	if key == nil {
		return nil, noTickets(c)
	}
	var err error
	if cfg.TLS, err = daemon.ReadCA(c); err != nil {
		return nil, err
	}
	for _, host := range []string{c.Accounting.Host, c.Accounting.BackupHost} {
		if host != "" {
			address := net.JoinHostPort(host, strconv.Itoa(c.Accounting.Port))
			cfg.Accounting = append(cfg.Accounting, client.Address{Name: host, Network: "tcp", Address: address})
		}
	}
	return &ledger{client: client.NewAccounting(cfg), key: key}, nil
}

// noTickets returns the error for accounting over TCP without a key. The
// error's hint names two remedies: configure a UNIX socket, or configure a key.
func noTickets(c *conf.Cluster) error {
	reason, remedy := "this cluster has no jwt_key", "AuthAltTypes=auth/jwt and AuthAltParameters=jwt_key=PATH"
	if c.JWT && c.JWKS != "" {
		reason, remedy = "the key set in jwks= cannot sign", "jwt_key=PATH beside jwks= in AuthAltParameters="
	}
	return errs.New(errs.Invalid, "%s: accounting over TCP requires tokens, and %s", c.Path, reason).
		WithHint("set AccountingStorageSocket=PATH for an accounting daemon on this machine, "+
			"or %s with the same key in both daemons", remedy)
}

// Record sends jobs to the accounting daemon.
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
