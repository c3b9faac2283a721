package conf

import (
	"os"
	"path"
	"strings"

	"schedrestd/internal/errs"
)

// MainFile is the name of the cluster's configuration among the files that a
// controller sends.
const MainFile = "slurm.conf"

// Sent holds configuration files that a controller sent, by name.
type Sent struct {
	Origin string // the controller's address, "host:port"; it precedes the names of the files in errors
	Files  map[string]string
	CA     string // file of the CAs with which they were fetched; "" for none. It takes the place of ca_cert.pem
}

// Path returns the path by which errors and warnings name a file that a
// controller sent: the address of the controller, a slash, and the file's name.
// Such a path is not absolute.
func (s Sent) Path(name string) string { return s.Origin + "/" + name }

// ReadSent works like Read, for files that a controller sent. As in Slurm, the
// controller sends the files that its slurm.conf includes by a relative name.
// Files with an absolute path are on this machine. ReadSent always opens them with
// this process's own rights, because the controller chooses their paths.
func ReadSent(s Sent) (*Cluster, []Warning, error) {
	local, used := newSource(disk{}), []string{}
	c, warnings, err := readCluster(s.Path(MainFile), func(file string) ([]byte, uint32, error) {
		if path.IsAbs(file) {
			return local(file)
		}
		name := strings.TrimPrefix(file, s.Origin+"/")
		text, ok := s.Files[name]
		if !ok {
			return nil, 0, errs.New(errs.NotFound, "%s: the controller did not send this file", file).
				WithHint("an Include with a relative name is sent by the controller; other files need an absolute path")
		}
		used = append(used, name)
		return []byte(text), uint32(os.Geteuid()), nil
	})
	if err == nil {
		c.Sent, c.SentCA = used, s.CA
	}
	return c, warnings, err
}
