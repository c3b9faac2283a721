package plan

import (
	"log/slog"
	"net"
	"net/netip"
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
func addDaemons(c *conf.Cluster, s *work.Setup, log *slog.Logger) (err error) {
	s.Controllers, err = resolveDaemons(keySpelling(c, "SchedctldHost"), displayedControllers(c), c.ControllerPort, log)
	if err == nil && c.SharedAddress != "" {
		var sharedErr error
		shared := []conf.Host{{Name: c.SharedAddress, Address: c.SharedAddress}}
		if s.Front, sharedErr = resolveDaemons(keySpelling(c, "SchedctldAddr"), shared, c.ControllerPort, log); sharedErr != nil {
			log.Warn("shared address of the controllers not usable; using their own addresses until the next reload",
				"error", sharedErr)
		}
	}
	s.MorePorts = uint16(c.MorePorts)
	if err != nil || s.Content&work.ContentAccounting == 0 && (c.Accounting == nil || s.Register == "") {
		return err
	}
	// With gateway tokens, workers also ask who is an administrator.
	accounting := []conf.Host{{Name: c.Accounting.Host, Address: c.Accounting.Host}}
	if backup := c.Accounting.BackupHost; backup != "" {
		accounting = append(accounting, conf.Host{Name: backup, Address: backup})
	}
	if s.Accounting, err = resolveDaemons("AccountingStorageHost", accounting, c.Accounting.Port, log); err != nil {
		return err
	}
	if path := c.AccountingSocket(); path != "" { // a request without a token can use only this address
		s.Accounting = append(s.Accounting, work.Address{Name: c.Accounting.Host, Network: "unix", Address: path})
	}
	return nil
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

// resolveDaemons returns the addresses of daemons. This process, which has no
// privileges, resolves each name once, so that workers get only addresses. It
// omits a host that can't be resolved, such as a backup that is being replaced.
// The gateway then uses the other hosts. If no host is left, resolveDaemons
// returns an error.
func resolveDaemons(key string, hosts []conf.Host, port int, log *slog.Logger) (list []work.Address, err error) {
	var failures []error
	for _, h := range hosts {
		addrs, err := nss.Host(h.Address)
		if err != nil {
			failures = append(failures, errs.Wrap(err, errs.KindOf(err), "%s=%s", key, h.Address))
		}
		host := h.Address
		if host == h.Name {
			host = ""
		}
		for _, a := range addrs {
			list = append(list, work.Address{Name: h.Name, Host: host, Network: "tcp", Address: hostPort(a, port)})
		}
	}
	if len(list) == 0 && len(failures) > 0 {
		return nil, failures[0]
	}
	for _, err := range failures {
		log.Warn("daemon left out until the next reload", "error", err)
	}
	return list, nil
}

func hostPort(a netip.Addr, port int) string {
	return net.JoinHostPort(a.String(), strconv.Itoa(port))
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
