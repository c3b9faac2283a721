package bench

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/become"
	"schedrestd/bundled/demo/site"
	"schedrestd/gateway/keeper"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/security"
)

// verifications compares how fast the keeper and the worker verify signatures.
// tokenRequests compares requests with three kinds of tokens: tokens that the
// worker remembers, tokens that the keeper verifies, and tokens that the
// controller verifies.
var (
	verifications = &comparison{title: "signatures verified per second, median", columns: []string{"HS256 by the keeper, including the round trip to it", "RS256 (2048 bits) in the worker"}}
	tokenRequests = &comparison{title: "ping, kept alive, median of paired rounds", columns: []string{"a token that the worker remembers", "a new token per request, verified by the keeper", "a new token per request, verified by the controller"}}
)

// keeperEnv makes this program a keeper.
const keeperEnv = "SCHEDRESTD_BENCH_KEEPER"

func init() {
	if os.Getenv(keeperEnv) != "" {
		os.Exit(keeper.Main())
	}
	tables = append(tables, verifications, tokenRequests)
}

// Limits of the keeper. The limit on tasks is high, because RLIMIT_NPROC counts
// all processes of the user who runs the benchmark.
const (
	keeperFiles = 64
	keeperTasks = 1 << 16
)

// startKeeper starts a keeper with the given key, and returns a worker's
// channel to the keeper.
func startKeeper(b *testing.B, key []byte) *ipc.Channel {
	b.Helper()
	parent, fd, err := ipc.Pair(ipc.Managers, ipc.Keeper)
	must(b, err)
	childEnd := os.NewFile(uintptr(fd), "channel")
	defer childEnd.Close()
	cmd := exec.Command("/proc/self/exe") // the keeper's user may have no access to the path of this program
	cmd.Env, cmd.Stderr, cmd.ExtraFiles = []string{keeperEnv + "=1", "GOMAXPROCS=2", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}, os.Stderr, []*os.File{childEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	expect := &ipc.Attributes{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	if os.Getuid() == 0 { // a keeper has no capabilities
		expect.UID, expect.GID = become.Overflow, become.Overflow
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: expect.UID, Gid: expect.GID}
	} else {
		groups, err := os.Getgroups()
		must(b, err)
		for _, gid := range groups {
			expect.Groups = append(expect.Groups, uint32(gid))
		}
	}
	runtime.LockOSThread()
	inherited, err := security.ReadInheritance(unix.Gettid())
	runtime.UnlockOSThread()
	must(b, err)
	expect.Bounding, expect.Seccomp = inherited.Bounding, inherited.Seccomp
	for name, id := range inherited.Namespaces {
		expect.Namespaces = append(expect.Namespaces, ipc.Namespace{Type: name, ID: id})
	}
	must(b, security.CloseInherited()) // the process that started the benchmarks may have left descriptors open
	must(b, cmd.Start())
	b.Cleanup(func() { parent.Close(); _ = cmd.Wait() })
	path := filepath.Join(b.TempDir(), "key")
	must(b, os.WriteFile(path, key, 0o600))
	file, err := os.Open(path)
	must(b, err)
	defer file.Close()
	worker, peerFD, err := ipc.Pair(ipc.Worker, ipc.Keeper)
	must(b, err)
	b.Cleanup(func() { worker.Close() })
	peerEnd := os.NewFile(uintptr(peerFD), "channel")
	defer peerEnd.Close()

	must(b, errors.Join(parent.Send(&ipc.ServiceSetup{Files: keeperFiles, Tasks: keeperTasks}), parent.Send(expect)))
	receive[*ipc.Ready](b, parent)
	emptyFD, err := unix.MemfdCreate("empty", unix.MFD_CLOEXEC) // an empty file without a name is none
	must(b, err)
	defer unix.Close(emptyFD)
	must(b, parent.Send(&ipc.SecretKeys{Token: true, Current: true}, emptyFD, emptyFD, emptyFD, int(file.Fd()), emptyFD, emptyFD, emptyFD))
	if reply := receive[*ipc.KeysResult](b, parent); !reply.OK {
		b.Fatal(reply.Reason)
	}
	must(b, parent.Send(&work.WorkerChannel{Number: 1}, int(peerEnd.Fd())))
	return worker
}

func receive[M ipc.Message](b *testing.B, channel *ipc.Channel) M {
	b.Helper()
	m, err := channel.Receive()
	must(b, err)
	message, ok := m.Message.(M)
	if !ok {
		b.Fatalf("the keeper sent %v", m.Message)
	}
	return message
}

// BenchmarkVerifications measures how many signatures are verified per second,
// first for one caller and then for 16 concurrent callers.
func BenchmarkVerifications(b *testing.B) {
	secret := make([]byte, 32)
	rand.Read(secret)
	key, err := auth.NewKey(secret)
	must(b, err)
	token, err := auth.Create(key, "alice", time.Hour, time.Now())
	must(b, err)
	byKeeper := keeperVerifier(b, startKeeper(b, secret), token)
	byWorker := workerVerifier(b)
	const count = 20_000
	figures := map[int][2][]float64{}
	for b.Loop() {
		for _, n := range []int{1, clients} {
			f := figures[n]
			f[0] = append(f[0], perSecond(count, n, byKeeper))
			f[1] = append(f[1], perSecond(count, n, byWorker))
			figures[n] = f
		}
	}
	for _, n := range []int{1, clients} {
		hs, rs := medianFloat(figures[n][0]), medianFloat(figures[n][1])
		verifications.add(row{name: fmt.Sprintf("%d at a time", n), figures: []float64{hs, rs}, ratio: hs / rs})
		b.ReportMetric(hs, fmt.Sprintf("HS256/s-%d", n))
		b.ReportMetric(rs, fmt.Sprintf("RS256/s-%d", n))
	}
	b.ReportMetric(0, "ns/op")
}

// perSecond returns the total number of answers per second that n concurrent
// callers get.
func perSecond(count, n int, verify func(caller int)) float64 {
	start := time.Now()
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			for range count / n {
				verify(i)
			}
		})
	}
	wait.Wait()
	return float64(count) / time.Since(start).Seconds()
}

// keeperVerifier returns a function that asks the keeper to verify a token. As
// in a worker, one goroutine reads the channel and wakes the callers.
func keeperVerifier(b *testing.B, channel *ipc.Channel, token string) func(int) {
	signed := token[:strings.LastIndexByte(token, '.')]
	mac, err := base64.RawURLEncoding.DecodeString(token[len(signed)+1:])
	must(b, err)
	var waiting [clients]chan query.Verdict
	for i := range waiting {
		waiting[i] = make(chan query.Verdict, 1)
	}
	go func() {
		for {
			m, err := channel.Receive()
			if err != nil {
				return
			}
			v := m.Message.(*query.Verified)
			waiting[v.ID] <- v.Verdict
		}
	}()
	return func(caller int) {
		if err := channel.Send(&query.Verify{ID: uint64(caller), Signed: []byte(signed), MAC: [32]byte(mac)}); err != nil {
			panic(err)
		}
		if verdict := <-waiting[caller]; verdict != query.Genuine {
			panic(verdict)
		}
	}
}

// workerVerifier returns a function that verifies a signature with a key set.
func workerVerifier(b *testing.B) func(int) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(b, err)
	number := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	set, err := auth.ParseKeySet(fmt.Appendf(nil, `{"keys":[{"kty":"RSA","kid":"1","n":%q,"e":%q}]}`, number(key.N), number(big.NewInt(int64(key.E)))))
	must(b, err)
	signed := "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdW4iOiJhbGljZSJ9"
	signature, err := jwt.SigningMethodRS256.Sign(signed, key)
	must(b, err)
	return func(int) {
		if set.Answer(auth.Signature{KeyID: "1", Signed: signed, Bytes: signature}) != auth.Good {
			panic("not good")
		}
	}
}

// BenchmarkTokens measures requests with a token that was verified before, and
// requests that each have a new token.
func BenchmarkTokens(b *testing.B) {
	l := theLab.open(b)
	keyed, keyless := l.gateway(b), l.startKeyless(b)
	secret, err := os.ReadFile(l.Key())
	must(b, err)
	key, err := auth.NewKey(secret)
	must(b, err)
	var number atomic.Int64
	newToken := func() string { // each token is valid for a second longer than the last, so that no two are equal
		token, err := auth.Create(key, l.Owner, time.Hour+time.Duration(number.Add(1))*time.Second, time.Now())
		if err != nil {
			panic(err)
		}
		return token
	}
	cachedLoad := load{request: get("/sched/v0.0.43/ping"), keepAlive: true, count: 3000}
	freshLoad := cachedLoad
	freshLoad.token = newToken
	cases := []struct {
		server
		load
	}{{keyed, cachedLoad}, {keyed, freshLoad}, {keyless, freshLoad}}
	samples := make([][]sample, len(cases))
	for _, k := range cases {
		measure(b, k.server, k.load) // warm up
	}
	for round := 0; b.Loop(); round++ {
		for i := range cases {
			index := (round + i) % len(cases)
			samples[index] = append(samples[index], measure(b, cases[index].server, cases[index].load))
		}
	}
	for _, figure := range []struct {
		name, unit string
		value      func(sample) float64
	}{
		{"requests per second", "", func(s sample) float64 { return s.rate }},
		{"CPU of the gateway per request", "µs", func(s sample) float64 { return s.cpu }},
	} {
		r := row{name: figure.name, unit: figure.unit}
		for i := range cases {
			r.figures = append(r.figures, median(samples[i], figure.value))
		}
		r.ratio = r.figures[0] / r.figures[1]
		tokenRequests.add(r)
	}
	b.ReportMetric(median(samples[0], func(s sample) float64 { return s.rate }), "remembered/s")
	b.ReportMetric(0, "ns/op")
}

// startKeyless returns a gateway that can't read the key.
func (l *lab) startKeyless(b *testing.B) server {
	b.Helper()
	text, err := os.ReadFile(l.Conf())
	must(b, err)
	path := filepath.Join(filepath.Dir(l.Conf()), "keyless.conf")
	must(b, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), l.Key(), l.Key()+".absent")), 0o600))
	ports, err := site.FreePorts(1)
	must(b, err)
	p := l.Schedrestd(l.bin, fmt.Sprintf("127.0.0.1:%d", ports[0]))
	for i, arg := range p.Args {
		if arg == l.Conf() {
			p.Args[i] = path
		}
	}
	p.Name, p.Log = "keyless", l.Log("keyless")
	d := l.start(b, p)
	b.Cleanup(func() { _ = d.Stop() })
	return newServer(b, d, tcpDialer(strings.TrimPrefix(d.Address, "http://")))
}
