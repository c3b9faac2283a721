package install

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// bareMachineScript is a script that simulates a machine on which nothing of
// this project is installed. The simulated machine is a set of namespaces. It
// has the files of the real machine. But /etc contains only a few of them, and
// /run, /var/lib and the subdirectories of /usr/local contain none. Changes in
// these directories are lost when the script ends. The only users are root,
// daemon and the one with uid 65534, and the only network interface is loopback.
//
// The directories of the project and its toolchain stay visible, even inside a
// directory that the script hides.
const bareMachineScript = `set -e
mount --make-rprivate /
keep() { [ -d "$1" ] || return 0; exec {fd}<"$1"; kept="$kept $fd:$1"; }
for dir in "$PROJECT" $TOOLS; do keep "$dir"; done
hide() { [ ! -d "$1" ] || mount -t tmpfs -o mode=755 tmpfs "$1"; }
for dir in /run /var/lib /usr/local/bin /usr/local/sbin /usr/local/lib /usr/local/share /usr/local/etc; do hide $dir; done
mkdir /run/etc
for name in nsswitch.conf ld.so.cache ld.so.conf ld.so.conf.d alternatives login.defs default skel pam.d security ssl host.conf gitconfig; do
	[ ! -e /etc/$name ] || cp -a /etc/$name /run/etc/
done
for name in passwd group; do grep -E '^(root|daemon|nobody|nogroup):' /etc/$name >/run/etc/$name; done
echo 'root:*:19000:0:99999:7:::' >/run/etc/shadow
echo 'root:*::' >/run/etc/gshadow
chmod 0640 /run/etc/shadow /run/etc/gshadow
echo '127.0.0.1 localhost head' >/run/etc/hosts
mount --bind /run/etc /etc
for one in $kept; do
	[ -d "${one#*:}" ] || mkdir -p "${one#*:}"
	mount --bind "/proc/self/fd/${one%%:*}" "${one#*:}"
	eval "exec ${one%%:*}<&-"
done
mount -t proc proc /proc
hostname head
ip link set lo up
cd "$PROJECT"
exec timeout --kill-after=10 300 bash -e "$0"
`

// onBareMachine runs a script as root on a bare machine, in the directory of
// the project. It returns the script's output.
func onBareMachine(t *testing.T, script string) (string, error) {
	t.Helper()
	harness.NeedRoot(t)
	for _, program := range []string{"unshare", "ip", "useradd", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/mnt").CombinedOutput(); err != nil {
		t.Skipf("namespaces, and mounts in them, can't be made here: %s", bytes.TrimSpace(out))
	}
	project := harness.Root
	tools, err := exec.Command("go", "env", "GOROOT", "GOCACHE", "GOMODCACHE").Output()
	harness.Must(t, err)
	list := strings.Fields(string(tools))
	file := filepath.Join(t.TempDir(), "script")
	harness.Must(t, os.WriteFile(file, []byte(script), 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child",
		"bash", "-c", bareMachineScript, file)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + filepath.Join(list[0], "bin"),
		"HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8", "PROJECT=" + project, "TOOLS=" + strings.Join(list, " "),
		"GOCACHE=" + list[1], "GOMODCACHE=" + list[2], "GOFLAGS=" + os.Getenv("GOFLAGS")}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
