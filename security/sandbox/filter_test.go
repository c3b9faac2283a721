package sandbox

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// run executes a filter the way the kernel does, and returns the filter's
// result.
func run(t *testing.T, program []unix.SockFilter, arch, number uint32, args [6]uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data[0:], number)
	binary.LittleEndian.PutUint32(data[4:], arch)
	for i, v := range args {
		binary.LittleEndian.PutUint64(data[16+8*i:], v)
	}
	var a uint32
	for at := 0; at < len(program); at++ {
		i := program[at]
		var yes bool
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[i.K:])
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= i.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(i.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			yes = a == i.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			yes = a >= i.K
		default:
			t.Fatalf("instruction %d has code %#x", at, i.Code)
		}
		if yes {
			at += int(i.Jt)
		} else {
			at += int(i.Jf)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

// evaluate returns the table's verdict on a call. It checks the rows one by
// one.
func evaluate(table []row, number uint32, args [6]uint64) verdict {
	for _, r := range table {
		fits := uint32(r.call.number) == number
		for _, w := range r.tests {
			one := false
			for _, v := range w.values {
				one = one || args[w.arg]&w.mask == v
			}
			fits = fits && one
		}
		if fits {
			return r.verdict
		}
	}
	return kill
}

var allOptions = map[string]Options{
	"worker": {}, "worker that dials UNIX sockets": {Unix: true}, "keeper": {Kind: Keeper}, "keeper-register": {Kind: Keeper, Register: true}, "auditor": {Kind: Auditor}, "auditor-claims": {Kind: Auditor, Claims: true}, "dispatcher": {Kind: Dispatcher}, "exporter": {Kind: Exporter}, "output": {Kind: Output}, "credential": {Kind: Credential},
	"keeper with a switch of workers": {Kind: Keeper, Unix: true}, "dispatcher with a switch of workers": {Kind: Dispatcher, Unix: true},
}

// TestFilter checks that the filter and the table give the same verdict for
// every call number. The tested arguments are the values in the table and
// values close to them.
func TestFilter(t *testing.T) {
	for name, o := range allOptions {
		t.Run(name, func(t *testing.T) {
			rows := table(o, 4711)
			program, err := compile(rows, false)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d rows, %d instructions", len(rows), len(program))
			interesting := []uint64{0, 1, 2, 3, 4, 7, 4711, 4712, 1 << 32, 4711 | 1<<32, 1 << 63, ^uint64(0), 0xffffffff}
			for _, r := range rows {
				for _, w := range r.tests {
					for _, v := range w.values {
						interesting = append(interesting, v, v|1<<32, v|w.mask, v+1, v^1<<29)
					}
				}
			}
			draw := rand.New(rand.NewPCG(1, 2))
			for number := range uint32(520) {
				for range 400 {
					var args [6]uint64
					for i := range args {
						args[i] = interesting[draw.IntN(len(interesting))]
					}
					got := run(t, program, auditArch, number, args)
					if want := evaluate(rows, number, args).action(false); got != want {
						t.Fatalf("call %d with %#x: %#x, the table has %#x", number, args, got, want)
					}
				}
				if got := run(t, program, auditArch^1, number, [6]uint64{}); got != unix.SECCOMP_RET_KILL_PROCESS {
					t.Fatalf("call %d in another architecture: %#x", number, got)
				}
				if got := run(t, program, auditArch, number|0x40000000, [6]uint64{}); got != unix.SECCOMP_RET_KILL_PROCESS {
					t.Fatalf("call %d as x32: %#x", number, got)
				}
			}
		})
	}
}

// TestAuditKillsNothingOfOurs checks that audit mode logs the calls that
// otherwise kill the process, and changes no other verdict. Calls that our
// programs never make, such as x32 calls, must kill the process even in audit
// mode.
func TestAuditKillsNothingOfOurs(t *testing.T) {
	rows := table(Options{}, 1)
	program, err := compile(rows, true)
	if err != nil {
		t.Fatal(err)
	}
	for number := range uint32(1100) {
		var args [6]uint64
		got, want := run(t, program, auditArch, number, args), evaluate(rows, number, args).action(true)
		if got != want || got == unix.SECCOMP_RET_KILL_PROCESS {
			t.Errorf("call %d: %#x, want %#x", number, got, want)
		}
	}
	if got := run(t, program, auditArch, 0x40000000|unix.SYS_GETPID, [6]uint64{}); got != unix.SECCOMP_RET_KILL_PROCESS {
		t.Errorf("a call of x32: %#x", got)
	}
}

func TestCompileRefuses(t *testing.T) {
	long := make([]uint64, 300)
	for i := range long {
		long[i] = uint64(i)
	}
	tests := []struct {
		name string
		rows []row
		want string
	}{
		{"a row after one that fits always", []row{{call: sys("x", 1), verdict: allow}, {call: sys("x", 1), verdict: eperm}}, "x: rows follow"},
		{"no value", []row{{call: sys("x", 1), tests: []test{is(0)}}}, "for 0 values"},
		{"an argument that calls don't have", []row{{call: sys("x", 1), tests: []test{is(6, 1)}}}, "argument 6"},
		{"a value that the mask hides", []row{{call: sys("x", 1), tests: []test{{arg: 0, mask: 1, values: []uint64{2}}}}}, "within the mask"},
		{"upper halves that differ", []row{{call: sys("x", 1), tests: []test{is(0, 1, 1<<32)}}}, "upper halves"},
		{"too far a jump", []row{{call: sys("x", 1), tests: []test{is(0, long...)}}}, "the maximum is 255"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := compile(tt.rows, false); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestTables checks that the files testdata/*.filter, which are for reviewers,
// show the current tables. It ignores rows of other architectures.
func TestTables(t *testing.T) {
	for name, o := range map[string]Options{"worker": {}, "worker-unix": {Unix: true}, "keeper": {Kind: Keeper}, "keeper-register": {Kind: Keeper, Register: true}, "auditor": {Kind: Auditor}, "auditor-claims": {Kind: Auditor, Claims: true}, "dispatcher": {Kind: Dispatcher}, "exporter": {Kind: Exporter}, "output": {Kind: Output}, "credential": {Kind: Credential}} {
		t.Run(name, func(t *testing.T) {
			path := "testdata/" + name + ".filter"
			got := tableText(o)
			if *update {
				if runtime.GOARCH != "amd64" {
					t.Fatal("the pages are generated on amd64")
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want strings.Builder
			for line := range strings.Lines(string(raw)) {
				if !strings.Contains(line, archSuffix) || strings.Contains(line, archSuffix+runtime.GOARCH) {
					want.WriteString(line)
				}
			}
			if diff := cmp.Diff(want.String(), got); diff != "" {
				t.Errorf("%s is stale: go test ./security/sandbox -update (-file +table):\n%s", path, diff)
			}
		})
	}
}

const archSuffix = "; only "

func tableText(o Options) string {
	var b strings.Builder
	fmt.Fprintln(&b, "# Generated by go test ./security/sandbox -update. A call that matches no line kills the process (SIGSYS).")
	own := len(table(o, 1)) - len(archRows(o))
	for i, r := range table(o, 1) {
		words := make([]string, len(r.tests))
		for i, w := range r.tests {
			words[i] = strings.ReplaceAll(w.String(), fmt.Sprintf("%#x", uint64(threadFlags)), "THREAD")
		}
		reason := r.reason
		if i >= own {
			reason += archSuffix + runtime.GOARCH
		}
		fmt.Fprintf(&b, "%-6s %-18s %-70s # %s\n", r.verdict, r.call.name, strings.Join(words, ", "), reason)
	}
	return b.String()
}

func (t test) String() string {
	if t.name != "" {
		return fmt.Sprintf("arg%d is %s", t.arg, t.name)
	}
	if len(t.values) == 1 && t.values[0] == 0 && t.mask != ^uint64(0) {
		return fmt.Sprintf("arg%d has no %#x", t.arg, t.mask)
	}
	words := make([]string, len(t.values))
	for i, v := range t.values {
		words[i] = fmt.Sprintf("%#x", v)
	}
	if t.mask != ^uint64(0) {
		return fmt.Sprintf("arg%d&%#x is %s", t.arg, t.mask, strings.Join(words, "|"))
	}
	return fmt.Sprintf("arg%d is %s", t.arg, strings.Join(words, "|"))
}

func (v verdict) String() string { return [...]string{"kill", "allow", "EPERM", "ENOSYS"}[v] }

// TestRowsHaveReasons checks that every row has a reason.
func TestRowsHaveReasons(t *testing.T) {
	for name, o := range allOptions {
		for _, r := range table(o, 1) {
			if r.reason == "" || r.call.name == "" || r.verdict == kill && len(r.tests) == 0 {
				t.Errorf("%s: row %+v lacks a name, a verdict or a reason", name, r)
			}
		}
	}
}
