package demo

import (
	"os"
	"path/filepath"

	"schedrestd/become/nss"
	"schedrestd/demo/site"
)

// A home is the directory of the demo. If root runs the demo for another user,
// that user may enter the directory but not list it. The directory contains a
// site, and these files of the demo's user:
//
//	job/   0700  working directory of the demo's jobs, with their output
//	token  0600  the token as a header line, for curl -H @FILE, so that it appears in no list of processes
type home struct {
	*site.Site
	user  nss.User // the jobs run as this user, and the token is for this user
	token string
}

func (h *home) jobDir() string    { return filepath.Join(h.Dir, "job") }
func (h *home) tokenFile() string { return filepath.Join(h.Dir, "token") }

// createHome creates the files of the demo in the empty directory dir.
func createHome(dir string) (*home, error) {
	s, err := site.New(dir)
	if err != nil {
		return nil, err
	}
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
	if err := site.WritePrivate(h.tokenFile(), "X-SCHED-USER-TOKEN: "+token+"\n"); err != nil {
		return err
	}
	return h.chown(h.tokenFile())
}
