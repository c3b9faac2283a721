package slurm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/integration/harness"
)

// The cluster of TestMonth. Two proxies, because each needs two open files for a
// client, and a machine may permit only 20,000.
const (
	monthUsers    = 24
	monthGateways = 4
	monthProxies  = 2
	monthProxyID  = 20010 // uid and gid of the user rest, as whom the proxies run
	monthRegister = "etc/slurm/tokens"
	monthKey      = "etc/slurm/jwt_hs256.key"
)

// A month is a cluster with two controllers and four gateways behind HAProxy, and
// the clients that use it.
type month struct {
	t         *testing.T
	m         *machine
	clients   int
	length    time.Duration
	proxies   [monthProxies]string // HOST:PORT
	proxyPIDs []int
	sockets   [monthGateways]*os.File
	gateways  [monthGateways]*daemon
	backup    *daemon
	key       []byte
	users     []*monthUser
	meter     *monthMeter

	follow, work context.Context // of the streams, and of all other clients
	submitting   chan struct{}   // closed when no more jobs are to be submitted
	submitters   sync.WaitGroup
	others       sync.WaitGroup
	changingKey  atomic.Bool
	mu           sync.Mutex // guards the fields below
	daemons      []*daemon  // the gateways and the second controller
	followers    []monthFollower
	unsaved      [2]time.Time   // when the controller that was killed may have accepted what it did not save
	backupServed [2]time.Time   // when the second controller accepted jobs
	unknown      []*monthJob    // jobs for which the answer was 404
	faults       map[string]int // how often, by form
	measured     []string       // what is not in a table
}

// monthUser is a user with many clients.
type monthUser struct {
	name      string
	transport *http.Transport
	token     atomic.Pointer[monthToken]
	mu        sync.Mutex // guards jobs
	jobs      []*monthJob
}

// monthToken is a token of a user, and the requests that are parked with it.
type monthToken struct {
	text, id string // id is that of a gateway token
	parked   atomic.Int64
	revoked  atomic.Bool
	replaced chan struct{}
}

// monthJob is a submission.
type monthJob struct {
	name, key string
	asked     time.Time
	answered  time.Time // zero before the answer
	id        int
}

// fault records a wrong answer. It keeps one of each form, in which numbers do not count.
func (x *month) fault(form string, args ...any) {
	text := fmt.Sprintf(form, args...)
	key := monthNumber.ReplaceAllString(text, "N")
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.faults[key]++; x.faults[key] == 1 {
		x.t.Error(text)
	}
}

var monthNumber = regexp.MustCompile(`[0-9]+`)

func (x *month) report(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	x.t.Log(line)
	x.measured = append(x.measured, line)
}

// TestMonth uses a cluster with two controllers and four gateways that share nothing, behind
// HAProxy with the shipped configuration: 40 % of the clients follow their jobs, 30 % wait for a
// job or for a change, 25 % poll, and 5 % submit jobs with Idempotency-Keys. Meanwhile the
// first controller is killed and comes back, the gateways are upgraded one after the other, the
// cluster gets a new key, and the token of a user is revoked. No submission may be lost or
// doubled, each stream must show what a fresh list has, no answer may be about another user, and
// each failure must be a 503 after which the client succeeds. The test prints the tables of
// PERFORMANCE.md. SLURM_MONTH_CLIENTS is the number of clients, and SLURM_MONTH how long they run.
func TestMonth(t *testing.T) {
	x := &month{t: t, m: freshCluster(t), clients: 200, length: 30 * time.Second, submitting: make(chan struct{}), faults: map[string]int{}}
	if n, err := strconv.Atoi(os.Getenv("SLURM_MONTH_CLIENTS")); err == nil {
		x.clients = n
	}
	if d, err := time.ParseDuration(os.Getenv("SLURM_MONTH")); err == nil {
		x.length = d
	}
	haproxy := harness.FindProgram(t, "haproxy", "haproxy")
	var files syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	files.Cur = files.Max
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)) // also for the programs that the test starts
	x.prepareCluster()
	x.installUpgrade()
	for i := range x.gateways {
		must(t, os.RemoveAll(filepath.Join(x.m.root, "var/log", fmt.Sprint("month", i, ".keys")))) // of an earlier run
		x.listen(i)
		x.startGateway(i, "/opt/gateway")
	}
	for i := range x.proxies {
		x.startProxy(i, haproxy)
	}
	x.meter = newMonthMeter(x)

	var endFollow, endWork context.CancelFunc
	x.follow, endFollow = context.WithCancel(t.Context())
	x.work, endWork = context.WithCancel(t.Context())
	defer func() {
		endFollow()
		endWork()
		x.others.Wait()
	}()
	begun := time.Now()
	x.startClients()
	x.during("the first minutes", func() {})
	x.during("failover", x.failOver)
	x.during("upgrade", x.upgrade)
	x.during("new key", x.changeKey)
	x.during("revocation", x.revoke)
	close(x.submitting)
	x.submitters.Wait()
	x.checkStreams()
	x.meter.finish(time.Since(begun))
	endFollow()
	endWork()
	x.others.Wait()
	x.checkJobs()
	for form, n := range x.faults {
		t.Logf("%d times: %s", n, form)
	}
	t.Log("\n" + x.meter.table(x.measured))
}

// prepareCluster gives the cluster a second controller and users.
func (x *month) prepareCluster() {
	t, m := x.t, x.m
	conf := filepath.Join(m.root, "etc/slurm/slurm.conf")
	text, err := os.ReadFile(conf)
	must(t, err)
	t.Cleanup(func() { must(t, os.WriteFile(conf, text, 0)) })
	const primary = "SlurmctldHost=head(127.0.0.1)\n"
	changed := harness.Substitute(t, string(text), `^`+regexp.QuoteMeta(primary), primary+"SlurmctldHost=back(127.0.0.2)\nSlurmctldTimeout=10\nPrivateData=jobs\n")
	must(t, os.WriteFile(conf, []byte(changed), 0))
	m.appendFile(t, "etc/hosts", "127.0.0.2 back\n")
	var passwd, group, names strings.Builder
	for i := range monthUsers {
		u := &monthUser{name: fmt.Sprintf("m%02d", i)}
		// Each user has an address, as a wrong token counts against the address.
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+i))}}
		u.transport = &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1000, IdleConnTimeout: 50 * time.Second}
		t.Cleanup(u.transport.CloseIdleConnections)
		x.users = append(x.users, u)
		fmt.Fprintf(&passwd, "%s:x:%d:%[2]d::/tmp:/bin/sh\n", u.name, 21000+i)
		fmt.Fprintf(&group, "%s:x:%d:\n", u.name, 21000+i)
		names.WriteString("," + u.name)
	}
	m.appendFile(t, "etc/passwd", passwd.String())
	m.appendFile(t, "etc/group", group.String())
	m.run(t, "slurm", "sacctmgr", "-i", "-Q", "add", "user", names.String()[1:], "account=physics")
	setUpGatewayTokens(t, m, func() {}) // starts slurmctld again
	m.signal(t, "slurmd", "TERM")
	m.awaitExit(t, "slurmd")
	m.restart(t, "slurmd") // it must know the second controller
	m.giveKey(t, "jwt_hs256.key")
	x.key, err = os.ReadFile(filepath.Join(m.root, monthKey))
	must(t, err)
	x.giveTokens()
	x.startBackup()
}

// launch starts a daemon, which is measured as long as it runs.
func (x *month) launch(name string, env, args []string, sockets ...*os.File) *daemon {
	x.t.Helper()
	d := x.m.launch(x.t, name, env, args, sockets...)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.daemons = append(x.daemons, d)
	return d
}

// running returns the process ids of the daemons that launch has started and that still run.
func (x *month) running() (pids []int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range x.daemons {
		select {
		case <-d.ended:
		default:
			pids = append(pids, d.cmd.Process.Pid)
		}
	}
	return pids
}

// giveToken gives a user a new token: a gateway token to the first two users, and one of Slurm
// to the others.
func (x *month) giveToken(i int) {
	u, now, token := x.users[i], time.Now().UTC().Truncate(time.Second), &monthToken{replaced: make(chan struct{})}
	var err error
	if i < 2 {
		token.id = gatewaytoken.NewID()
		token.text, err = gatewaytoken.Sign(gatewaytoken.Token{Cluster: "lab", User: u.name, Scopes: scope.All, ID: token.id, Issued: now, Expires: now.Add(24 * time.Hour)}, x.key)
		must(x.t, err)
	} else {
		token.text = harness.NewToken(x.t, x.key, jwt.SigningMethodHS256, jwt.MapClaims{"sun": u.name, "iat": now.Unix(), "exp": now.Add(24 * time.Hour).Unix()})
	}
	if old := u.token.Swap(token); old != nil {
		close(old.replaced)
	}
}

func (x *month) giveTokens() {
	for i := range x.users {
		x.giveToken(i)
	}
}

// startBackup starts the second controller, which has another host name and a directory
// of its own for the file with its process id. It returns when both controllers are up.
func (x *month) startBackup() {
	x.t.Helper()
	x.backup = x.launch("back", nil, []string{"unshare", "--uts", "--mount", "sh", "-c", `hostname back; mount -t tmpfs none /run/slurm; chown slurm /run/slurm
		exec setpriv --reuid=slurm --regid=slurm --init-groups slurmctld -D -i -L /var/log/slurm/backctld.log`})
	x.awaitController("back", true)
	x.awaitController("head", true)
}

func (x *month) awaitController(name string, up bool) {
	x.t.Helper()
	eventually(x.t, fmt.Sprintf("%s is up: %t", name, up), func() bool {
		out, _ := x.m.try("root", "scontrol", "ping")
		return strings.Contains(out, name+" is UP") == up
	})
}

// installUpgrade builds the programs again, as another version, and installs them in a
// directory of their own.
func (x *month) installUpgrade() {
	dir := filepath.Join(x.m.root, "opt/upgrade")
	must(x.t, os.RemoveAll(dir))
	must(x.t, os.MkdirAll(dir, 0o755))
	x.t.Cleanup(func() { os.RemoveAll(dir) })
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -X schedrestd/internal/release.commit=upgrade", "-o", dir+"/", "../../cmd/schedrestd...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		x.t.Fatalf("build: %v\n%s", err, out)
	}
	// As after "make install": the parent copies programs to memory that others can read.
	for _, pattern := range []string{"opt/gateway/schedrestd-*", "opt/upgrade/schedrestd-*"} {
		programs, err := filepath.Glob(filepath.Join(x.m.root, pattern))
		must(x.t, err)
		for _, program := range programs {
			must(x.t, os.Chmod(program, 0o711))
		}
	}
	if version := x.m.run(x.t, "root", "/opt/upgrade/schedrestd", "-V"); !strings.Contains(version, "upgrade") {
		x.t.Fatalf("the other version is %s", version)
	}
}

// listen opens the socket of a gateway, and keeps it open, as systemd does.
func (x *month) listen(i int) {
	path := filepath.Join(x.m.root, x.socket(i))
	os.Remove(path)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(x.t, err)
	listener.SetUnlinkOnClose(false)
	must(x.t, os.Chmod(path, 0o666))
	x.sockets[i], err = listener.File()
	must(x.t, err)
	must(x.t, listener.Close())
	x.t.Cleanup(func() { x.sockets[i].Close() })
}

func (x *month) socket(i int) string { return fmt.Sprintf("/run/month%d.sock", i) }

// startGateway starts a gateway with the programs in dir.
func (x *month) startGateway(i int, dir string) {
	x.t.Helper()
	name := fmt.Sprint("month", i)
	x.gateways[i] = x.launch(name, []string{"SLURM_JWT=daemon", "SCHEDRESTD_TOKEN_REGISTER=/" + monthRegister, "SCHEDRESTD_TRUSTED_PROXIES=unix:rest",
		"SCHEDRESTD_IDEMPOTENCY_SEARCH=on", "SCHEDRESTD_IDEMPOTENCY_FILE=/var/log/" + name + ".keys", "SCHEDRESTD_DEBUG=error"},
		[]string{dir + "/schedrestd", "-f", x.m.conf(), "-u", "nobody", "-g", "nogroup"}, x.sockets[i])
	x.awaitReady(i)
}

func (x *month) awaitReady(i int) {
	x.t.Helper()
	client := x.m.client(x.socket(i))
	client.Timeout = 5 * time.Second
	defer client.CloseIdleConnections()
	eventually(x.t, fmt.Sprintf("gateway %d is ready", i), func() bool {
		a, err := sendRequest(client, "GET", "/readyz", "")
		return err == nil && a.status == 200
	})
}

// startProxy starts HAProxy with the shipped configuration, changed for four gateways that
// find keys in the cluster.
func (x *month) startProxy(i int, program string) {
	t := x.t
	text, err := os.ReadFile("../../deploy/examples/haproxy.cfg")
	must(t, err)
	dir := t.TempDir()
	x.proxies[i] = fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	empty, servers, tracked := filepath.Join(dir, "token.map"), "", ""
	for g := range x.gateways {
		server := fmt.Sprintf("\tserver gateway%d unix@%s ", g, filepath.Join(x.m.root, x.socket(g)))
		servers += server + "check\n"
		tracked += fmt.Sprintf("%strack gateways/gateway%d\n", server, g)
	}
	must(t, os.WriteFile(empty, []byte("token none\n"), 0o644))
	config := harness.Substitute(t, string(text), `(?s)^# A request with an Idempotency-Key.*`, "", `^\tuse_backend one_gateway .*$`, "",
		`^\tserver two .*$`, "", `^\tserver one .* check$`, servers, `^\tserver one .* track .*$`, tracked, `^\tuser alice password .*$`, "\tuser alice insecure-password x",
		` :443 ssl crt /etc/haproxy/site\.pem.*$`, fmt.Sprintf(" 127.0.0.1:%d", harness.FreePort(t)), ` :8443 ssl crt /etc/haproxy/site\.pem.*$`, " "+x.proxies[i],
		`/etc/haproxy/sched-token\.map`, empty)
	file := filepath.Join(dir, "haproxy.cfg")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "global\n\tmaxconn %d\n\tuid %d\n\tgid %[2]d\n\n%s", max(1000, x.clients*2/3), monthProxyID, config), 0o644))
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	defer log.Close()
	cmd := exec.Command(program, "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	x.proxyPIDs = append(x.proxyPIDs, cmd.Process.Pid)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("HAProxy: %.2000s", text)
		}
	})
	eventually(t, "HAProxy serves", func() bool { return harness.Accepts(x.proxies[i])(t.Context()) == nil })
}

// startClients starts all clients, within a few seconds.
func (x *month) startClients() {
	ramp := x.length / 30
	for n := range x.clients {
		c := &monthClient{month: x, user: x.users[n%monthUsers], proxy: x.proxies[n/monthUsers%monthProxies], number: n}
		run, group, ctx := c.stream, &x.others, x.follow
		switch k := (n%monthUsers + 7*(n/monthUsers)) % 20; { // each user has clients of each kind
		case k < 8:
		case k < 14:
			run, ctx = c.wait, x.work
		case k < 19:
			run, ctx = c.poll, x.work
		default:
			run, group, ctx = c.submit, &x.submitters, x.work
		}
		group.Go(func() {
			if pause(ctx, time.Duration(rand.Int64N(int64(ramp)+1))) {
				run(ctx)
			}
		})
	}
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// during lets the clients run for a part of the time, then causes an event, and waits until
// clients of each kind have been answered afterwards.
func (x *month) during(event string, cause func()) {
	x.t.Helper()
	pause(x.work, x.length/6)
	begun := time.Now()
	cause()
	for kind, before := range x.meter.good() {
		eventually(x.t, fmt.Sprintf("clients of the kind %q are served after: %s", kind, event), func() bool { return x.meter.good()[kind] > before })
		x.t.Logf("%s: %s is served after %.1f s", event, kind, time.Since(begun).Seconds())
	}
	x.t.Logf("%s: done after %.1f s", event, time.Since(begun).Seconds())
}

// failOver kills the first controller, which comes back when the second one has served.
func (x *month) failOver() {
	t, m := x.t, x.m
	eventually(t, "the backup can see that the primary was alive", func() bool {
		_, err := os.Stat(filepath.Join(m.root, "var/lib/slurm-state/heartbeat"))
		return err == nil
	})
	// Slurm itself starts jobs twice whose start it has not saved, and then drains their node. So
	// no job runs meanwhile. The clients go on submitting jobs.
	m.run(t, "root", "scontrol", "update", "PartitionName=debug", "State=DOWN")
	eventually(t, "no job runs", func() bool {
		out, err := m.try("root", "squeue", "-h", "-t", "RUNNING,COMPLETING,CONFIGURING")
		return err == nil && out == ""
	})
	quiet := time.Now()
	eventually(t, "the ends of the jobs are saved", func() bool {
		info, err := os.Stat(filepath.Join(m.root, "var/lib/slurm-state/job_state.old")) // the save before the last one
		return err == nil && info.ModTime().After(quiet)
	})
	x.meter.countRPCs()
	// slurmctld saves its state some seconds after it has accepted a job.
	saved, err := os.Stat(filepath.Join(m.root, "var/lib/slurm-state/job_state.old"))
	must(t, err)
	m.run(t, "root", "sh", "-c", "kill -KILL $(cat /run/slurm/slurmctld.pid)")
	killed := time.Now()
	x.mu.Lock()
	x.unsaved = [2]time.Time{saved.ModTime(), killed}
	x.mu.Unlock()
	x.awaitController("head", false)
	eventually(t, "the backup accepts jobs", func() bool { return x.acceptedSince(killed) })
	x.report("Failover: the second controller accepted the first job %.0f s after the first one was killed.", time.Since(killed).Seconds())
	x.meter.countRPCs()
	m.restart(t, "slurmctld")
	x.awaitController("head", true)
	x.mu.Lock()
	x.backupServed = [2]time.Time{killed, time.Now()}
	x.mu.Unlock()
	x.awaitController("back", true)
	m.run(t, "root", "scontrol", "update", "PartitionName=debug", "State=UP")
}

// acceptedSince reports whether a job has been accepted that was submitted after a time.
func (x *month) acceptedSince(start time.Time) bool {
	for _, u := range x.users {
		u.mu.Lock()
		accepted := slices.ContainsFunc(u.jobs, func(j *monthJob) bool { return j.asked.After(start) && !j.answered.IsZero() })
		u.mu.Unlock()
		if accepted {
			return true
		}
	}
	return false
}

// upgrade replaces each gateway by one of another version.
func (x *month) upgrade() {
	begun := time.Now()
	for i := range x.gateways {
		x.gateways[i].stop(x.t)
		x.startGateway(i, "/opt/upgrade")
	}
	x.report("Upgrade: the four gateways were replaced one after the other in %.0f s.", time.Since(begun).Seconds())
}

// changeKey changes the cluster's key, as KEYS.md says, and gives the users new tokens.
func (x *month) changeKey() {
	t, m := x.t, x.m
	x.changingKey.Store(true) // until the next event
	begun := time.Now()
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(rand.Uint32())
	}
	path := filepath.Join(m.root, monthKey)
	must(t, os.WriteFile(path+".new", key, 0o440))
	m.run(t, "root", "chown", "root:slurm", "/"+monthKey+".new")
	must(t, os.Rename(path+".new", path))
	x.key = key
	x.meter.countRPCs()
	x.backup.stop(t)
	for _, name := range []string{"slurmctld", "slurmdbd"} {
		m.signal(t, name, "TERM")
		m.awaitExit(t, name)
	}
	m.restart(t, "slurmdbd")
	m.restart(t, "slurmctld")
	x.startBackup()
	x.giveTokens()
	for i := range x.gateways {
		client := m.client(x.socket(i))
		defer client.CloseIdleConnections()
		for _, u := range []*monthUser{x.users[0], x.users[2]} {
			eventually(t, fmt.Sprintf("gateway %d accepts new tokens", i), func() bool {
				a, err := sendRequest(client, "GET", "/slurm/"+watchedVersion+"/jobs/state/", "", "X-SLURM-USER-TOKEN: "+u.token.Load().text)
				return err == nil && a.status == 200
			})
		}
	}
	x.report("New key: all gateways and daemons accepted the new tokens %.0f s after the key was replaced.", time.Since(begun).Seconds())
}

// revoke revokes the gateway token of the first user, waits until nothing is parked with it,
// and gives the user a new token.
func (x *month) revoke() {
	t, u := x.t, x.users[0]
	x.changingKey.Store(false)
	old := u.token.Load()
	eventually(t, "requests are parked with the token", func() bool { return old.parked.Load() > 0 })
	parked := old.parked.Load()
	old.revoked.Store(true)
	begun := time.Now()
	must(t, os.WriteFile(filepath.Join(x.m.root, monthRegister), []byte(gatewaytoken.RevokeToken(old.id)), 0o644))
	for old.parked.Load() > 0 {
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("%d requests are still parked with the revoked token", old.parked.Load())
		}
		time.Sleep(5 * time.Millisecond)
	}
	x.report("Revocation: the last of %d parked requests had ended %d ms after the register was changed.", parked, time.Since(begun).Milliseconds())
	for i := range x.gateways {
		client := x.m.client(x.socket(i))
		eventually(t, fmt.Sprintf("gateway %d refuses the revoked token", i), func() bool {
			a, err := sendRequest(client, "GET", "/slurm/"+watchedVersion+"/jobs/state/", "", "X-SLURM-USER-TOKEN: "+old.text)
			return err == nil && a.status == 401
		})
		client.CloseIdleConnections()
	}
	x.giveToken(0)
}
