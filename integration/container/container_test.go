// Package container builds the image of deploy/container. It runs the image in
// front of a controller, as an ordinary user and on a read-only root file
// system.
package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/integration/harness"
	"schedrestd/integration/pod"
)

func TestMain(m *testing.M) {
	pod.Main()
	harness.Main(m)
}

// build builds the image with buildah. If buildah does not work here, build
// calls pod.BuildImage instead.
func build(t *testing.T) *pod.Image {
	t.Helper()
	if _, err := exec.LookPath("buildah"); err == nil {
		if i, err := buildah(t); err == nil {
			return i
		} else {
			t.Logf("buildah does not work here: %v", err)
		}
	}
	return pod.BuildImage(t)
}

func buildah(t *testing.T) (*pod.Image, error) {
	store := t.TempDir()
	run := func(args ...string) (string, error) {
		cmd := exec.Command("buildah", append([]string{"--root", store + "/storage", "--runroot", store + "/run", "--storage-driver", "vfs"}, args...)...)
		cmd.Dir = harness.Root
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("buildah %v: %s", args, exit.Stderr)
		}
		return strings.TrimSpace(string(out)), err
	}
	if _, err := run("build", "--isolation", "chroot", "-f", "deploy/container/Containerfile", "-t", "schedrestd", "."); err != nil {
		return nil, err
	}
	name, err := run("from", "localhost/schedrestd")
	if err != nil {
		return nil, err
	}
	i := &pod.Image{}
	t.Cleanup(func() { run("umount", name) })
	if i.Root, err = run("mount", name); err != nil {
		return nil, err
	}
	text, err := run("inspect", name)
	var inspected struct{ OCIv1 struct{ Config *pod.Image } }
	inspected.OCIv1.Config = i
	if err == nil {
		err = json.Unmarshal([]byte(text), &inspected)
	}
	t.Log("built with buildah")
	return i, err
}

// runScript starts a container as a container runtime does: in namespaces, as
// an ordinary user, and with no_new_privs, a read-only root and the cluster's
// configuration. The container shares the network of this machine, on which the
// controller runs.
const runScript = `mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount -t proc proc "$ROOT/proc"
mount --bind /dev/null "$ROOT/dev/null"
mount --bind "$CONF" "$ROOT/etc/slurm/slurm.conf"
mount -o remount,bind,ro "$ROOT"
exec env -i PATH="/usr/sbin:/usr/bin:/sbin:/bin" $VARIABLES setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid chroot --userspec="$USERSPEC" --groups= "$ROOT" "$@"`

func TestContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make namespaces")
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("namespaces can't be made here: %s", out)
	}
	for name, build := range map[string]func(*testing.T) *pod.Image{"image": build, "copied": pod.BuildImage} {
		t.Run(name, func(t *testing.T) { checkServes(t, build(t)) })
	}
}

func checkServes(t *testing.T, i *pod.Image) {
	uid, gid, _ := strings.Cut(i.User, ":")
	if uid == "" || uid == "0" || gid == "0" || len(i.Env) == 0 {
		t.Fatalf("the image runs as %q with %q", i.User, i.Env)
	}
	l := harness.NewLab(t)
	harness.Must(t, errors.Join(os.MkdirAll(i.Root+"/proc", 0o555), os.MkdirAll(i.Root+"/dev", 0o755), os.MkdirAll(i.Root+"/etc/slurm", 0o755),
		os.WriteFile(i.Root+"/dev/null", nil, 0o644), os.WriteFile(i.Root+"/etc/slurm/slurm.conf", nil, 0o644)))
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	conf := filepath.Join(i.Root, "..", filepath.Base(i.Root)+".conf") // readable by the image's user
	harness.Must(t, os.WriteFile(conf, text, 0o644))
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	harness.Must(t, err)
	defer log.Close()
	args := append([]string{"-ec", runScript, "run"}, i.Entrypoint...)
	cmd := exec.Command("bash", append(args, "-v", address)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	cmd.Env = append(os.Environ(), "ROOT="+i.Root, "CONF="+conf, "VARIABLES="+strings.Join(i.Env, " "), "USERSPEC="+i.User)
	cmd.Stdout, cmd.Stderr = log, log
	harness.Must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill() // it is the first process of the container, so all others are killed with it
		cmd.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the container logged:\n%s", text)
		}
	})
	logged := func() string {
		text, err := os.ReadFile(log.Name())
		harness.Must(t, err)
		return string(text)
	}
	harness.Eventually(t, "the container serves", func() bool {
		resp, err := http.Get("http://" + address + "/readyz")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == 200
	})
	r, err := http.NewRequest("GET", "http://"+address+"/sched/v0.0.43/ping", nil)
	harness.Must(t, err)
	// The controller knows this user, and the image does not.
	key, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	r.Header.Set("X-SCHED-USER-TOKEN", harness.NewToken(t, key, jwt.SigningMethodHS256,
		jwt.MapClaims{"iat": time.Now().Unix(), "exp": time.Now().Unix() + 600, "sun": "daemon"}))
	resp, err := (&http.Client{Timeout: time.Minute}).Do(r)
	harness.Must(t, err)
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	harness.Must(t, err)
	if resp.StatusCode != 200 || !strings.Contains(string(text), `"pinged":"UP"`) {
		t.Errorf("%s\n%s", resp.Status, text)
	}
	layers := regexp.MustCompile(`msg="confinement of the workers" on="([^"]*)"`).FindStringSubmatch(logged())
	if layers == nil || !strings.Contains(layers[1], "seccomp") || !strings.Contains(layers[1], "no_new_privs") {
		t.Errorf("confinement %q", layers)
	}
	checkIDs(t, cmd.Process.Pid, uid, gid)
}

// checkIDs checks that the container's first process and its descendants run as
// the image's user, and that these processes can gain no privileges.
func checkIDs(t *testing.T, first int, uid, gid string) {
	t.Helper()
	found := 0
	for _, pid := range append(children(first), strconv.Itoa(first)) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%s/status", pid))
		if err != nil {
			continue
		}
		found++
		for _, want := range []string{"Uid:\t" + strings.Repeat(uid+"\t", 3) + uid, "Gid:\t" + strings.Repeat(gid+"\t", 3) + gid, "CapEff:\t0000000000000000", "NoNewPrivs:\t1"} {
			if !strings.Contains(string(text), want+"\n") {
				t.Errorf("process %s has no %q:\n%s", pid, want, text)
			}
		}
	}
	want := 4 // a parent, a dispatcher, a resolver and a worker
	if runtime.NumCPU() >= 4 {
		want = 5 // there are two workers
	}
	if found < want {
		t.Errorf("%d processes in the container", found)
	}
}

// children returns the descendants of a process, including those that threads
// other than the main thread started.
func children(pid any) (list []string) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%v/task/*/children", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(thread)
		for _, child := range strings.Fields(string(text)) {
			list = append(append(list, child), children(child)...)
		}
	}
	return list
}

// TestKubernetes checks that the example for Kubernetes is well-formed, and
// that its security context is the one for which the image is made.
func TestKubernetes(t *testing.T) {
	f, err := os.Open(filepath.Join(harness.Root, "deploy/kubernetes/schedrestd.yaml"))
	harness.Must(t, err)
	defer f.Close()
	kinds := map[string]map[string]any{}
	for d := yaml.NewDecoder(f); ; {
		var object map[string]any
		if err := d.Decode(&object); err == io.EOF {
			break
		} else {
			harness.Must(t, err)
		}
		kinds[object["kind"].(string)] = object
	}
	for _, kind := range []string{"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"} {
		if kinds[kind] == nil {
			t.Errorf("no %s", kind)
		}
	}
	spec := kinds["Deployment"]["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	user := spec["securityContext"].(map[string]any)["runAsUser"]
	if got := pod.BuildImage(t).User; got != fmt.Sprintf("%v:%v", user, user) {
		t.Errorf("the image has user %s, the example %v", got, user)
	}
	context := spec["containers"].([]any)[0].(map[string]any)["securityContext"].(map[string]any)
	if context["readOnlyRootFilesystem"] != true || context["allowPrivilegeEscalation"] != false {
		t.Errorf("security context %v", context)
	}
}
