// Package site creates a site. A site is a one-machine cluster. Its
// configuration, key and state are in one directory. The package also starts
// the daemons of the cluster. The demo, the integration tests and the
// benchmarks use sites.
//
// Daemons are started without the caller's environment, so SCHED_CONF and
// SCHED_JWT have no effect on them. The kernel kills the daemons when the
// process that started them exits.
package site

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
)

// A Site is a one-machine cluster whose files are in one directory:
//
//	etc/    configuration and key
//	state/  state of controller and accounting daemon
//	run/    the daemons' sockets
//	log/    the daemons' logs
type Site struct {
	Dir            string
	Node           string // name of this machine, without its domain
	Owner          string // user that the daemons run as: a name or a uid
	Cluster        string // name of the cluster; "": demo
	Controller     int    // ports on the loopback interface
	Accounting     int
	AuthParameters string // AuthAltParameters of both daemons; "": Key signs tokens
	TLS            bool   // the daemons use TLS (TLSType=tls/s2n)
	PrivateData    string // PrivateData= of both daemons; "": not set
	Extra          string // lines appended to the cluster's configuration
}

// Conf returns the path of the cluster's configuration.
func (s *Site) Conf() string    { return filepath.Join(s.Dir, "etc", "sched.conf") }
func (s *Site) DbdConf() string { return filepath.Join(s.Dir, "etc", "scheddbd.conf") }

// Key returns the path of the key that signs tokens.
func (s *Site) Key() string { return filepath.Join(s.Dir, "etc", "jwt.key") }

// Socket returns the path of the controller's socket.
func (s *Site) Socket() string { return filepath.Join(s.Dir, "run", "schedctld.sock") }

// DbdSocket returns the path of the accounting daemon's socket.
func (s *Site) DbdSocket() string { return filepath.Join(s.Dir, "run", "scheddbd.sock") }

// Log returns the path of the log file of the program with this name.
func (s *Site) Log(name string) string { return filepath.Join(s.Dir, "log", name) }

// maxSocket is the maximum length in bytes of the path of a UNIX socket.
const maxSocket = 107

// New creates a site in the directory dir, which must be empty. It creates the
// site's directories and a key, and chooses two free ports. The site belongs to
// the user of this process. Configure writes the configuration.
func New(dir string) (*Site, error) {
	s := &Site{Dir: dir}
	if len(s.Socket()) > maxSocket {
		return nil, errs.New(errs.Invalid, "%s is too long for the path of a socket", s.Socket()).WithHint("set TMPDIR=/tmp")
	}
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	s.Node, _, _ = strings.Cut(name, ".")
	self, err := nss.LookupUID(uint32(os.Geteuid()))
	if err != nil {
		return nil, err
	}
	s.Owner = self.Name
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	s.Controller, s.Accounting = ports[0], ports[1]
	for _, name := range []string{"etc", "state", "run", "log"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	// Other users must be able to enter this directory, because they connect to
	// the sockets in it. The gateway's dispatcher also opens the sockets by
	// path.
	if err := os.Chmod(filepath.Join(dir, "run"), 0o711); err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	rand.Read(key)
	return s, WritePrivate(s.Key(), string(key))
}

// Configure writes the configuration of both daemons.
func (s *Site) Configure() error {
	err := errors.Join(WritePrivate(s.Conf(), s.clusterText()), WritePrivate(s.DbdConf(), s.dbdText()))
	if err == nil && s.TLS {
		err = WriteCertificates(filepath.Join(s.Dir, "etc"), s.Node)
	}
	return err
}

func (s *Site) clusterText() string {
	return fmt.Sprintf(`ClusterName=%s
SchedctldHost=%s(127.0.0.1)
SchedctldPort=%d
SchedUser=%s
StateSaveLocation="%s"
%sAccountingStorageType=accounting_storage/scheddbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=%d
%s%s`, cmp.Or(s.Cluster, "demo"), s.Node, s.Controller, s.Owner, filepath.Join(s.Dir, "state", "schedctld"), s.authText(s.Socket()), s.Accounting, s.accountingSocket(), s.Extra)
}

// accountingSocket returns the line that names the accounting daemon's socket.
// With TLS there is none, so that the controller uses TLS, too.
func (s *Site) accountingSocket() string {
	if s.TLS {
		return ""
	}
	return fmt.Sprintf("AccountingStorageSocket=\"%s\"\n", s.DbdSocket())
}

func (s *Site) dbdText() string {
	return fmt.Sprintf(`DbdHost=127.0.0.1
DbdPort=%d
SchedUser=%s
StorageLoc="%s"
%s`, s.Accounting, s.Owner, filepath.Join(s.Dir, "state", "scheddbd.sqlite"),
		s.authText(s.DbdSocket()))
}

// authText returns a part of the configuration that both daemons need: how
// users authenticate, and which information is private.
func (s *Site) authText(socket string) string {
	private := ""
	if s.PrivateData != "" {
		private = "PrivateData=" + s.PrivateData + "\n"
	}
	if s.TLS {
		private += "TLSType=tls/s2n\n"
	}
	return fmt.Sprintf(`AuthType=auth/cred
AuthInfo="socket=%s"
AuthAltTypes=auth/jwt
AuthAltParameters="%s"
%s`, socket, cmp.Or(s.AuthParameters, "jwt_key="+s.Key()), private)
}

// WritePrivate creates a file that only its owner can read.
func WritePrivate(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
