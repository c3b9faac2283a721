package kernels

import (
	"fmt"
	"io"
	"path"
	"slices"
)

// An archive is a cpio archive in the format "newc". When a kernel boots, it
// unpacks such an archive into its initial file system. All files in the
// archive belong to root.
type archive struct {
	w     io.Writer
	err   error
	inode int
	dirs  []string // directories
}

const (
	modeDir     = 0o040000
	modeRegular = 0o100000
	modeLink    = 0o120000
)

// file adds a file, and its parent directories.
func (a *archive) file(name string, mode uint32, text []byte) {
	a.parents(name)
	a.entry(name, modeRegular|mode, text)
}

// link adds a symbolic link.
func (a *archive) link(name, to string) {
	a.parents(name)
	a.entry(name, modeLink|0o777, []byte(to))
}

func (a *archive) dir(name string, mode uint32) {
	if name == "." || slices.Contains(a.dirs, name) {
		return
	}
	a.parents(name)
	a.dirs = append(a.dirs, name)
	a.entry(name, modeDir|mode, nil)
}

func (a *archive) parents(name string) { a.dir(path.Dir(name), 0o755) }

// finish adds the mark for the end of the archive.
func (a *archive) finish() error {
	a.entry("TRAILER!!!", 0, nil)
	return a.err
}

func (a *archive) entry(name string, mode uint32, text []byte) {
	a.inode++
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, mode, 0, 0, 1, 0, len(text), 0, 0, 0, 0, len(name)+1, 0)
	a.write([]byte(header + name + "\x00"))
	a.write(text)
}

// write writes text, padded to a multiple of four bytes.
func (a *archive) write(text []byte) {
	if a.err == nil {
		_, a.err = a.w.Write(append(slices.Clip(text), make([]byte, -len(text)&3)...))
	}
}
