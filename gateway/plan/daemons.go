package plan

import (
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
)

// addDaemons adds the addresses of the site's controllers and accounting
// daemons to s. In each list, the addresses are in the order in which workers
// should try them.
func addDaemons(c *conf.Cluster, s *work.Setup, log *slog.Logger) {
	s.Controllers = resolveDaemons(keySpelling(c, "SchedctldHost"), displayedControllers(c), c.ControllerPort, log)
	if c.SharedAddress != "" {
		shared := []conf.Host{{Name: c.SharedAddress, Address: c.SharedAddress}}
		s.Front = resolveDaemons(keySpelling(c, "SchedctldAddr"), shared, c.ControllerPort, log)
		if !s.Front[0].Known() && slices.ContainsFunc(s.Controllers, work.Address.Known) {
			log.Warn("shared address of the controllers not usable; using their own addresses until the next reload", "address", c.SharedAddress)
			s.Front = nil
		}
	}
	s.MorePorts = uint16(c.MorePorts)
	if s.Content&work.ContentAccounting == 0 && (c.Accounting == nil || s.Register == "") {
		return
	}
	// With gateway tokens, workers also ask who is an administrator.
	accounting := []conf.Host{{Name: c.Accounting.Host, Address: c.Accounting.Host}}
	if backup := c.Accounting.BackupHost; backup != "" {
		accounting = append(accounting, conf.Host{Name: backup, Address: backup})
	}
	s.Accounting = resolveDaemons("AccountingStorageHost", accounting, c.Accounting.Port, log)
	if path := c.AccountingSocket(); path != "" { // a request without a token can use only this address
		s.Accounting = append(s.Accounting, work.Address{Name: c.Accounting.Host, Network: "unix", Address: path})
	}
}

// displayedControllers returns the controllers with the names that users see.
// With Slurm's keys, a controller named "localhost" gets the machine's own
// name, as in Slurm.
func displayedControllers(c *conf.Cluster) []conf.Host {
	list := slices.Clone(c.Controllers)
	hostname, err := os.Hostname()
	for i := range list {
		if c.SlurmKeys && err == nil && strings.EqualFold(list[i].Name, "localhost") {
			list[i].Name, _, _ = strings.Cut(hostname, ".")
		}
	}
	return list
}

// resolveDaemons returns the addresses of daemons, one for each. It looks up their
// names, so that the first requests need not wait. The running gateway looks a name
// up again if it can't reach the daemon, or if the name can't be resolved yet.
func resolveDaemons(key string, hosts []conf.Host, port int, log *slog.Logger) (list []work.Address) {
	for _, h := range hosts {
		a := work.Address{Name: h.Name, Network: "tcp", Address: net.JoinHostPort(h.Address, strconv.Itoa(port))}
		if h.Address != h.Name {
			a.Host = h.Address
		}
		addrs, err := nss.Host(h.Address)
		if err != nil {
			log.Warn("host of a daemon can't be resolved yet; it is looked up again when a request needs it", "error", errs.Wrap(err, errs.KindOf(err), "%s=%s", key, h.Address))
		}
		if _, _, named := a.Named(); named {
			a.Resolved = addrs[:min(len(addrs), work.MaxAddresses)]
		}
		list = append(list, a)
	}
	return list
}

// sackSockets returns the sockets on which workers can request auth/slurm
// credentials. If the environment names a socket, sackSockets returns only that
// one. Otherwise it returns the sockets that Slurm's commands try, in the same
// order.
func (o *options) sackSockets(c *conf.Cluster) []string {
	if o.SackSocket != "" {
		return []string{o.SackSocket}
	}
	return append([]string{"/run/slurm-" + c.ClusterName + "/sack.socket"}, o.anySackSockets()...)
}

// anySackSockets returns the sockets whose paths do not contain the cluster's
// name.
func (o *options) anySackSockets() (list []string) {
	if o.SackSocket != "" {
		return []string{o.SackSocket}
	}
	for _, dir := range []string{"slurm", "slurmctld", "slurmdbd"} {
		list = append(list, "/run/"+dir+"/sack.socket")
	}
	return list
}
