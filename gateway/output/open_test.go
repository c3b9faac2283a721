package output

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc/query"
	"schedrestd/tools/lint/section"
)

var update = flag.Bool("update", false, "write the table of files")

const stranger = 54321

// TestOpen checks which files are opened. Some cases need root, to make files of
// another user.
func TestOpen(t *testing.T) {
	const secret = "secret"
	own := uint32(os.Getuid())
	tests := []struct {
		name  string
		root  bool
		build func(t *testing.T, dir string) (path string)
		want  query.OutputState
	}{
		{"a file", false, func(t *testing.T, dir string) string { return write(t, dir+"/f") }, query.OutputRead},
		{"through ..", false, func(t *testing.T, dir string) string {
			write(t, dir+"/f")
			return dir + "/../" + filepath.Base(dir) + "//./f"
		}, query.OutputRead},
		{"through links", false, func(t *testing.T, dir string) string {
			write(t, dir+"/f")
			must(t, errors.Join(os.Symlink("f", dir+"/a"), os.Symlink(dir, dir+"/b"), os.Symlink("b/../"+filepath.Base(dir)+"/a", dir+"/c")))
			return dir + "/b/c"
		}, query.OutputRead},
		{"a hard link", false, func(t *testing.T, dir string) string {
			must(t, os.Link(write(t, dir+"/f"), dir+"/g"))
			return dir + "/g"
		}, query.OutputRead},
		{"a sparse file of a terabyte", false, func(t *testing.T, dir string) string {
			must(t, os.Truncate(write(t, dir+"/f"), 1<<40))
			return dir + "/f"
		}, query.OutputRead},
		{"nothing", false, func(t *testing.T, dir string) string { return dir + "/f" }, query.OutputMissing},
		{"a file as a directory", false, func(t *testing.T, dir string) string { return write(t, dir+"/f") + "/g" }, query.OutputMissing},
		{"a file as a directory, without a name", false, func(t *testing.T, dir string) string { return write(t, dir+"/f") + "/" }, query.OutputMissing},
		{"a dangling link", false, func(t *testing.T, dir string) string { must(t, os.Symlink("g", dir+"/f")); return dir + "/f" }, query.OutputMissing},
		{"a relative path", false, func(t *testing.T, dir string) string { return strings.TrimPrefix(write(t, dir+"/f"), "/") }, query.OutputMissing},
		{"an empty path", false, func(*testing.T, string) string { return "" }, query.OutputMissing},
		{"a loop", false, func(t *testing.T, dir string) string { must(t, os.Symlink("f", dir+"/f")); return dir + "/f" }, query.OutputFailed},
		{"links without end", false, func(t *testing.T, dir string) string {
			for i := range 60 {
				must(t, os.Symlink(fmt.Sprint("l", i+1), fmt.Sprint(dir, "/l", i)))
			}
			return dir + "/l0"
		}, query.OutputFailed},
		{"a long name", false, func(t *testing.T, dir string) string { return dir + "/" + strings.Repeat("x", 300) }, query.OutputFailed},
		{"a directory", false, func(_ *testing.T, dir string) string { return dir }, query.OutputNotRegular},
		{"the root directory", false, func(*testing.T, string) string { return "/" }, query.OutputNotRegular},
		{"a FIFO", false, func(t *testing.T, dir string) string { must(t, unix.Mkfifo(dir+"/f", 0o600)); return dir + "/f" }, query.OutputNotRegular},
		{"a socket", false, func(t *testing.T, dir string) string {
			must(t, unix.Mknod(dir+"/f", unix.S_IFSOCK|0o600, 0))
			return dir + "/f"
		}, query.OutputNotRegular},
		{"a device", false, func(*testing.T, string) string { return "/dev/zero" }, query.OutputNotRegular},
		{"a link to a device", false, func(t *testing.T, dir string) string { must(t, os.Symlink("/dev/null", dir+"/f")); return dir + "/f" }, query.OutputNotRegular},
		{"the own environment", false, func(*testing.T, string) string { return "/proc/self/environ" }, query.OutputNotRegular},
		{"a descriptor of a file", false, func(t *testing.T, dir string) string {
			f, err := os.Open(write(t, dir+"/f"))
			must(t, err)
			t.Cleanup(func() { f.Close() })
			return fmt.Sprint("/proc/self/fd/", f.Fd())
		}, query.OutputRead}, // the kernel gives the path of the file as the target of the link
		{"a file of the kernel", false, func(*testing.T, string) string { return "/sys/kernel/mm/transparent_hugepage/enabled" }, query.OutputNotRegular},
		{"a file of another user", true, func(t *testing.T, dir string) string {
			must(t, os.Chown(write(t, dir+"/f"), stranger, 0))
			return dir + "/f"
		}, query.OutputForeign},
		{"a hard link to a file of another user", true, func(t *testing.T, dir string) string {
			must(t, errors.Join(os.Chown(write(t, dir+"/f"), stranger, 0), os.Link(dir+"/f", dir+"/g")))
			return dir + "/g"
		}, query.OutputForeign},
		{"a link of another user", true, func(t *testing.T, dir string) string {
			write(t, dir+"/f")
			must(t, errors.Join(os.Symlink("f", dir+"/a"), os.Lchown(dir+"/a", stranger, 0)))
			return dir + "/a"
		}, query.OutputUnsafe},
		{"a link of another user to a directory", true, func(t *testing.T, dir string) string {
			write(t, dir+"/f")
			must(t, errors.Join(os.Symlink(dir, dir+"/a"), os.Lchown(dir+"/a", stranger, 0)))
			return dir + "/a/f"
		}, query.OutputUnsafe},
		{"a link to a link of another user", true, func(t *testing.T, dir string) string {
			write(t, dir+"/f")
			must(t, errors.Join(os.Symlink("f", dir+"/a"), os.Lchown(dir+"/a", stranger, 0), os.Symlink("a", dir+"/b")))
			return dir + "/b"
		}, query.OutputUnsafe},
	}
	table := &strings.Builder{}
	fmt.Fprintf(table, "| file | result |\n|---|---|\n")
	defer func() {
		if own == 0 && !t.Failed() {
			section.Check(t, "../../docs/generated/ATTACKS-SERVICES.md", "<!-- files of output: generated by go test ./gateway/output -update -->\n", "<!-- end of files of output -->\n", table.String(), *update)
		}
	}()
	for _, tt := range tests {
		fmt.Fprintf(table, "| %s | %s |\n", tt.name, tt.want)
		t.Run(tt.name, func(t *testing.T) {
			if tt.root && own != 0 {
				t.Skip("needs root")
			}
			path := tt.build(t, t.TempDir())
			before := openFDs(t)
			f, err := open(path, own)
			state := query.OutputRead
			if err != nil {
				state, _ = stateOf(err)
			} else {
				text := make([]byte, len(secret))
				if _, err := io.ReadFull(f, text); err != nil || string(text) != secret {
					t.Errorf("read %q, %v", text, err)
				}
				f.Close()
			}
			if state != tt.want {
				t.Errorf("%s, %v; want %s", state, err, tt.want)
			}
			if after := openFDs(t); after != before {
				t.Errorf("%d descriptors are open, %d were", after, before)
			}
		})
	}
}

// TestOpenAsOther checks that the uid for which a file is opened is what counts,
// not the one that the process has.
func TestOpenAsOther(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	must(t, os.Chown(write(t, dir+"/theirs"), stranger, 0))
	must(t, errors.Join(os.Symlink("theirs", dir+"/link"), os.Lchown(dir+"/link", stranger, 0)))
	for path, want := range map[string]bool{"theirs": true, "link": true} {
		f, err := open(dir+"/"+path, stranger)
		if (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
		f.Close()
	}
	if _, err := open(write(t, dir+"/roots"), stranger); err != refusal(query.OutputForeign) {
		t.Errorf("a file of root: %v", err)
	}
}

func write(t *testing.T, path string) string {
	t.Helper()
	must(t, os.WriteFile(path, []byte("secret"), 0o600))
	return path
}

func openFDs(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
