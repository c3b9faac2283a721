package jobs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
)

// TestNSSUser checks a user that is not in /etc/passwd, but known to the
// system's name service. Sites with LDAP or sssd have such users. The daemons
// run in a mount namespace of their own, in which systemd's module for the name
// service finds the user. The machine itself is not changed.
func TestNSSUser(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	const name, uid = "only-in-nss", 61235
	l := harness.NewLab(t, func(l *harness.Lab) {
		namespace := filepath.Join(l.Dir, "etc", "namespace")
		harness.Must(t, os.WriteFile(namespace, []byte(`set -e
mount -t tmpfs -o mode=0755 none /run
mkdir /run/userdb
printf '{"userName":"`+name+`","uid":61235,"gid":61235,"homeDirectory":"/","shell":"/bin/sh"}\n' >/run/userdb/`+name+`.user
printf '{"groupName":"`+name+`","gid":61235}\n' >/run/userdb/`+name+`.group
ln -s `+name+`.user /run/userdb/61235.user
ln -s `+name+`.group /run/userdb/61235.group
printf 'passwd: files systemd\ngroup: files systemd\nhosts: files\n' >/run/nsswitch.conf
mount --bind /run/nsswitch.conf /etc/nsswitch.conf
exec "$@"
`), 0o600))
		inside := func(args ...string) []string {
			return append([]string{"--mount", "--propagation", "private", "sh", namespace}, args...)
		}
		if out, err := exec.Command("unshare", inside("getent", "passwd", name)...).CombinedOutput(); err != nil {
			t.Skipf("needs unshare and libnss-systemd, for a user that only the name service knows: %v %s", err, out)
		}
		for _, p := range []*site.Part{&l.DBD, &l.Ctld, &l.Restd} {
			p.Args = inside(append([]string{p.Path}, p.Args...)...)
			p.Path = "/usr/bin/unshare"
		}
	})
	id := l.Submit("id -u; id -g; echo $HOME $USER", nil, "X-SCHED-USER-NAME: "+name)
	if a := l.AwaitEnd(id); a.State() != "COMPLETED" {
		t.Fatalf("ended as %s: %s", a.State(), a.Text)
	}
	if got := l.Output(t, id); !strings.HasPrefix(got, fmt.Sprintf("%d\n%d\n", uid, uid)) {
		t.Errorf("output %q", got)
	}
	token := l.UserToken(name)
	l.Request("GET", "/sched/v0.0.43/ping", "", "X-SCHED-USER-TOKEN: "+token).Want(t, 200)
}
