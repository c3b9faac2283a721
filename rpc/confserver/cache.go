package confserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"syscall"
	"time"

	"schedrestd/conf"
	"schedrestd/internal/errs"
)

// A Cache is a directory with the last configuration that was fetched from each
// list of controllers. The directory must belong to this process's user, and no
// other user may write to it: anyone who can change a copy can redirect the tokens
// of users.
type Cache struct {
	Dir string
	// CA is the text of the CAs with which the configuration is fetched; nil
	// without TLS. A copy that was fetched with another CA, or without TLS, is
	// not used: its sender did not have to prove what is required now.
	CA []byte
}

// copied is the content of a file in the cache. The file's modification time is
// when the controller last sent this content.
type copied struct {
	Servers string            `json:"servers"`
	CA      string            `json:"ca"` // hash of Cache.CA
	Origin  string            `json:"origin"`
	Files   map[string]string `json:"files"`
}

// maxCopy limits the length of a file in the cache, in bytes. In JSON a text may
// take several times its length.
const maxCopy = 6 * MaxAnswer

// abandoned is the age after which an incomplete file was left by a process that
// no longer exists.
const abandoned = time.Minute

func fileName(servers Servers) string {
	return "slurm.conf-" + hash([]byte(servers.String()))[:16] + ".json"
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// open opens the directory and checks who may write to it. The error wraps
// fs.ErrNotExist if there is no directory.
//
// A link in the directory can't lead out of it (os.Root).
func (c Cache) open() (*os.Root, error) {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = checkOwner(info, c.Dir)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// checkOwner returns an error if another user can write to a file or directory.
func checkOwner(info fs.FileInfo, path string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return errs.New(errs.Denied, "%s does not belong to uid %d", path, os.Geteuid()).
			WithHint("the directory of the cache must belong to the user of schedrestd-config")
	case info.Mode().Perm()&0o022 != 0:
		return errs.New(errs.Denied, "%s: others can write to it", path).WithHint("chmod go-w %s", path)
	}
	return nil
}

// Load returns the configuration that was last fetched from these controllers,
// and how long ago. If the clock was set back meanwhile, the age is a guess, but
// not 0. The error wraps fs.ErrNotExist if there is none.
func (c Cache) Load(servers Servers) (sent conf.Sent, age time.Duration, err error) {
	root, err := c.open()
	if err != nil {
		return conf.Sent{}, 0, err
	}
	defer root.Close()
	found, info, err := read(root, fileName(servers))
	if err == nil && (found.Servers != servers.String() || found.Files[conf.MainFile] == "") {
		err = errs.New(errs.Malformed, "%s/%s has another content", c.Dir, fileName(servers))
	}
	if err == nil && found.CA != hash(c.CA) {
		err = errs.New(errs.Denied, "%s/%s was fetched with another CA, or without TLS", c.Dir, fileName(servers))
	}
	if err != nil {
		return conf.Sent{}, 0, err
	}
	return conf.Sent{Origin: found.Origin, Files: found.Files}, time.Since(info.ModTime()).Abs(), nil
}

func read(root *os.Root, name string) (found copied, info fs.FileInfo, err error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return copied{}, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return copied{}, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCopy {
		return copied{}, nil, errs.New(errs.Malformed, "%s is not a file of at most %d bytes", f.Name(), maxCopy)
	}
	if err := checkOwner(info, f.Name()); err != nil {
		return copied{}, nil, err
	}
	err = json.NewDecoder(io.LimitReader(f, maxCopy)).Decode(&found)
	return found, info, errs.Wrap(err, errs.Malformed, "%s", f.Name())
}

// Store replaces the copy of the configuration that was fetched from these
// controllers. It stores only the given files of sent. A reader finds either the
// previous copy or the new one, even after a crash.
func (c Cache) Store(servers Servers, sent conf.Sent, names []string) error {
	root, err := c.open()
	if err != nil {
		return err
	}
	defer root.Close()
	kept := copied{Servers: servers.String(), CA: hash(c.CA), Origin: sent.Origin, Files: map[string]string{}}
	for _, name := range names {
		kept.Files[name] = sent.Files[name]
	}
	name, now := fileName(servers), time.Now()
	if old, _, err := read(root, name); err == nil && old.CA == kept.CA && old.Origin == kept.Origin && maps.Equal(old.Files, kept.Files) {
		return root.Chtimes(name, now, now)
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return replace(root, name, text)
}

// replace replaces a file. If another process is replacing the file at the same
// time, replace does nothing.
func replace(root *os.Root, name string, text []byte) error {
	temporary := name + ".new"
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if info, err := root.Lstat(temporary); err != nil || time.Since(info.ModTime()) < abandoned {
			return err
		}
		if err := root.Remove(temporary); err != nil {
			return err
		}
		f, err = root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
