package ctld

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/conf"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// ledger is the accounting daemon, as the controller's own user.
type ledger struct {
	client *client.Accounting
	key    auth.Key
}

// recordTimeout is for one batch, and for the life of the token that goes with it.
const recordTimeout = 30 * time.Second

func newLedger(c *conf.Cluster, key auth.Key) *ledger {
	var to []client.Address
	for _, host := range []string{c.Accounting.Host, c.Accounting.BackupHost} {
		if host != "" {
			to = append(to, client.Address{Name: host, Network: "tcp", Address: net.JoinHostPort(host, strconv.Itoa(c.Accounting.Port))})
		}
	}
	return &ledger{client: client.NewAccounting(client.Config{Accounting: to, Cluster: c.ClusterName, Timeout: recordTimeout}), key: key}
}

// Record sends jobs with a token made for this one call.
func (l *ledger) Record(ctx context.Context, jobs []model.Job) error {
	user, err := become.LookupUID(uint32(os.Geteuid()))
	if err != nil {
		return err
	}
	token, err := auth.Create(l.key, user.Name, 2*recordTimeout, time.Now())
	if err != nil {
		return err
	}
	return l.client.RecordJobs(ctx, model.Credential{Token: token}, jobs)
}
