package demo

import (
	"fmt"
	"os"
	"path/filepath"

	"schedrestd/become/nss"
	"schedrestd/bundled/demo/site"
	"schedrestd/internal/guard"
)

// A home is the directory of the demo. If root runs the demo for another user,
// that user may enter the directory but not list it. The directory contains a
// site, and these files of the demo's user:
//
//	job/   0700  working directory of the demo's jobs, with their output
//	token  0600  the token as a header line, for curl -H @FILE, so that it appears in no list of processes
//	env    0600  shell commands that set the variables of schedctl, and PATH
type home struct {
	*site.Site
	user  nss.User // the jobs run as this user, and the token is for this user
	token string
}

func (h *home) jobDir() string    { return filepath.Join(h.Dir, "job") }
func (h *home) tokenFile() string { return filepath.Join(h.Dir, "token") }
func (h *home) envFile() string   { return filepath.Join(h.Dir, "env") }

// createHome creates the files of the demo in the empty directory dir. If tls is
// set, the daemons use TLS.
func createHome(dir string, tls bool) (*home, error) {
	s, err := site.New(dir)
	if err != nil {
		return nil, err
	}
	s.TLS = tls
	h := &home{Site: s}
	if h.user, err = demoUser(); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 { // the gateway, and perhaps the jobs, run under other uids and use paths in dir
		if err := os.Chmod(dir, 0o711); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(h.jobDir(), 0o700); err != nil {
		return nil, err
	}
	if err := h.chown(h.jobDir()); err != nil {
		return nil, err
	}
	return h, s.Configure()
}

// demoUser returns the user of the demo. This is the user who called sudo or,
// without sudo, the user of this process.
func demoUser() (nss.User, error) {
	if name := os.Getenv("SUDO_USER"); name != "" && os.Geteuid() == 0 {
		return nss.LookupUser(name)
	}
	return nss.LookupUID(uint32(os.Geteuid()))
}

// hasOtherUser reports whether the demo's user differs from the user of this
// process.
func (h *home) hasOtherUser() bool { return h.user.UID != uint32(os.Geteuid()) }

// chown makes the demo's user the owner of path.
func (h *home) chown(path string) error {
	if !h.hasOtherUser() {
		return nil
	}
	return os.Lchown(path, int(h.user.UID), int(h.user.GID))
}

// writeToken writes the token to a file.
func (h *home) writeToken(token string) error {
	h.token = token
	return h.writePrivate(h.tokenFile(), "X-SCHED-USER-TOKEN: "+token+"\n")
}

// writeEnv writes the file with which a shell gets the programs in the
// directory bin, the address of the gateway, and the token.
func (h *home) writeEnv(url, bin string) error {
	return h.writePrivate(h.envFile(), fmt.Sprintf("PATH=%s:$PATH\nexport SCHED_URL=%s SCHED_JWT=%s\n", guard.Quote(bin), guard.Quote(url), h.token))
}

// writePrivate writes a file that only the demo's user can read.
func (h *home) writePrivate(path, text string) error {
	if err := site.WritePrivate(path, text); err != nil {
		return err
	}
	return h.chown(path)
}
