package step

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLimits runs scripts that print their limits, umask and environment.
func TestLimits(t *testing.T) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	var large []Raw // more than the second stage has memory for without the kernel's help
	for i := range 11 {
		large = append(large, Raw(fmt.Sprintf("X%d=%0120000d", i, i)))
	}
	large = slices.Clip(large)
	for _, tt := range []struct {
		name        string
		environment []Raw
		memory      uint64
		script      string // its output is "yes" if all is as it should be
		want        string
		failed      bool
	}{
		{name: "a number", environment: []Raw{"SLURM_RLIMIT_NOFILE=57", "SLURM_RLIMIT_CPU=1234", "SLURM_RLIMIT_STACK=4194304"},
			script: `echo "$(ulimit -Sn) $(ulimit -St) $(ulimit -Ss)"; env | grep RLIMIT`, want: "57 1234 4096\n", failed: true},
		{name: "hard limits stay", environment: []Raw{"SLURM_RLIMIT_NOFILE=57"}, script: `test "$(ulimit -Hn)" = ` + hardLimit(t, unix.RLIMIT_NOFILE) + ` && echo yes`, want: "yes\n"},
		{name: "infinite", environment: []Raw{"SLURM_RLIMIT_STACK=18446744073709551615"}, script: `test "$(ulimit -Ss)" = "$(ulimit -Hs)" && echo yes`, want: "yes\n"},
		{name: "-1", environment: []Raw{"SLURM_RLIMIT_STACK=-1"}, script: `test "$(ulimit -Ss)" = "$(ulimit -Hs)" && echo yes`, want: "yes\n"},
		{name: "above the hard limit", environment: []Raw{"SLURM_RLIMIT_NOFILE=99999999999"}, script: `test "$(ulimit -Sn)" = "$(ulimit -Hn)" && echo yes`, want: "yes\n"},
		{name: "the user asks for more than the hard limit", environment: []Raw{"SLURM_RLIMIT_NOFILE=U99999999999"}, script: `echo; env | grep RLIMIT`,
			want: "schedctld: SLURM_RLIMIT_NOFILE=99999999999 exceeds the hard limit " + hardLimit(t, unix.RLIMIT_NOFILE) + ": the limit is not changed\n\n", failed: true},
		{name: "the user asks for a limit", environment: []Raw{"SLURM_RLIMIT_CORE=U0"}, script: `ulimit -Sc`, want: "0\n"},
		{name: "not a number", environment: []Raw{"SLURM_RLIMIT_CPU=5s", "SLURM_RLIMIT_NOFILE=58"}, script: `ulimit -Sn; env | grep RLIMIT`,
			want: "schedctld: SLURM_RLIMIT_CPU=\"5s\" is not a number\n58\nSLURM_RLIMIT_CPU=5s\n"},
		{name: "twice", environment: []Raw{"SLURM_RLIMIT_NOFILE=59", "SLURM_RLIMIT_NOFILE=60"}, script: `ulimit -Sn; env | grep RLIMIT`, want: "59\n", failed: true},
		{name: "another variable", environment: []Raw{"SLURM_RLIMIT_PIPES=1", "XSLURM_RLIMIT_CPU=1"}, script: `env | grep RLIMIT | sort`, want: "SLURM_RLIMIT_PIPES=1\nXSLURM_RLIMIT_CPU=1\n"},
		{name: "a small address space", environment: append(large, "SLURM_RLIMIT_AS=100000000", "SLURM_RLIMIT_DATA=50000000"), script: `ulimit -Sv; ulimit -Sd`, want: "97656\n48828\n"},
		{name: "an address space in which nothing fits", environment: []Raw{"SLURM_RLIMIT_AS=4096"}, script: `echo ran`, failed: true},
		{name: "a stack without room for arguments", environment: append(large, "SLURM_RLIMIT_STACK=0"), script: `echo ran`, failed: true},
		{name: "memory", memory: 2 << 30, script: `ulimit -Sm; ulimit -Hm`, want: "2097152\n2097152\n"},
		{name: "memory and a smaller limit", memory: 2 << 30, environment: []Raw{"SLURM_RLIMIT_RSS=1048576"}, script: `ulimit -Sm`, want: "2097152\n"}, // as in Slurm
		{name: "umask", environment: []Raw{"SLURM_UMASK=0077"}, script: `umask; env | grep UMASK`, want: "0077\n", failed: true},
		{name: "no umask", script: `umask`, want: "0022\n"},
		{name: "not a umask", environment: []Raw{"SLURM_UMASK=8"}, script: `umask`, want: "schedctld: SLURM_UMASK=\"8\" is not an octal number\n0022\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			if os.Getuid() == 0 {
				b.asOther()
			}
			spec := b.spec(tt.script)
			spec.Environment, spec.Memory = append(spec.Environment, tt.environment...), tt.memory
			spec.Output = Raw(b.work + "/out")
			o := b.run(spec)
			if got := b.read("out"); got != tt.want {
				t.Errorf("printed %q, want %q", got, tt.want)
			}
			if (o.State == Failed) != tt.failed {
				t.Errorf("ended as %+v", o)
			}
		})
	}
}

// hardLimit returns a hard limit of this process as ulimit(1) shows it.
func hardLimit(t *testing.T, resource int) string {
	t.Helper()
	var l unix.Rlimit
	if err := unix.Getrlimit(resource, &l); err != nil {
		t.Fatal(err)
	}
	if l.Max == math.MaxUint64 {
		return "unlimited"
	}
	return strconv.FormatUint(l.Max, 10)
}

// TestLimitNumber checks that numbers are read as strtoul(3) reads them.
func TestLimitNumber(t *testing.T) {
	for _, tt := range []struct {
		text string
		want uint64
		bad  bool
	}{
		{text: "0"}, {text: ""}, {text: "12", want: 12}, {text: " \t+12", want: 12}, {text: "007", want: 7},
		{text: "-1", want: math.MaxUint64}, {text: "18446744073709551615", want: math.MaxUint64}, {text: "99999999999999999999", want: math.MaxUint64},
		{text: " ", bad: true}, {text: "-", bad: true}, {text: "+", bad: true}, {text: "- 1", bad: true}, {text: "--1", bad: true}, {text: "12 ", bad: true},
		{text: "1K", bad: true}, {text: "unlimited", bad: true}, {text: "U1", bad: true}, {text: "0x10", bad: true}, {text: "1.5", bad: true},
	} {
		if got, ok := limitNumber(tt.text); got != tt.want || ok == tt.bad {
			t.Errorf("%q: %d %v, want %d", tt.text, got, ok, tt.want)
		}
	}
}
