package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

var inetdRuns = &comparison{title: "one ping in inetd mode, from start to end, median", columns: []string{"schedrestd", "reference"}}

// BenchmarkInetd measures complete runs of the gateway in inetd mode. In each
// run the gateway starts all its processes and answers one ping. If LAB_ENV
// names the file lab.env of a running lab, the benchmark also measures Slurm's
// gateway.
func BenchmarkInetd(b *testing.B) {
	l := theLab.open(b)
	schedrestd := l.inetd()
	slurmrestd := slurmInetd(b)
	var samples [2][]run
	for round := 0; b.Loop(); round++ {
		for i := range 2 {
			index := (round + i) % 2
			if command := []func() *exec.Cmd{schedrestd, slurmrestd}[index]; command != nil {
				samples[index] = append(samples[index], measureRun(b, command()))
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, figure := range []struct {
		name  string
		value func(run) float64
	}{
		{"wall", func(r run) float64 { return r.wall.Seconds() * 1000 }},
		{"CPU", func(r run) float64 { return r.cpu.Seconds() * 1000 }},
	} {
		r := row{name: figure.name, unit: "ms"}
		for _, list := range samples {
			var values []float64
			for _, s := range list {
				values = append(values, figure.value(s))
			}
			if len(values) > 0 {
				r.figures = append(r.figures, medianFloat(values))
			}
		}
		b.ReportMetric(r.figures[0], figure.name+"-ms")
		if len(r.figures) == 2 {
			r.ratio = r.figures[0] / r.figures[1]
		} else {
			inetdRuns.columns = inetdRuns.columns[:1]
		}
		inetdRuns.add(r)
	}
}

// A run contains the elapsed time and the CPU time of one process and its
// children.
type run struct{ wall, cpu time.Duration }

func measureRun(b *testing.B, cmd *exec.Cmd) run {
	b.Helper()
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	start := time.Now()
	err := cmd.Run()
	elapsed := time.Since(start)
	if err != nil || !strings.HasPrefix(out.String(), "HTTP/1.1 200") {
		b.Fatalf("%s: %v\n%s\n%s", cmd.Path, err, &out, &log)
	}
	return run{elapsed, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

const pingRequest = "GET http://localhost/%s/%s/ping HTTP/1.1\r\n%s: %s\r\n\r\n"

// inetd returns a command that runs the gateway once.
func (l *lab) inetd() func() *exec.Cmd {
	part := l.Schedrestd(l.bin, "")
	return func() *exec.Cmd {
		cmd := exec.Command(part.Path, part.Args[:len(part.Args)-1]...) // without the address, which is the last argument
		cmd.Env = part.Env
		cmd.Stdin = strings.NewReader(fmt.Sprintf(pingRequest, "sched", "v0.0.43", "X-SCHED-USER-TOKEN", l.token))
		return cmd
	}
}

// slurmInetd returns a function that creates a command. The command runs
// Slurm's gateway once. If LAB_ENV is not set or the benchmark does not run as
// root, slurmInetd returns nil.
func slurmInetd(b *testing.B) func() *exec.Cmd {
	path := os.Getenv("LAB_ENV")
	if path == "" || os.Geteuid() != 0 {
		b.Log("without Slurm's gateway: that needs root, and LAB_ENV=PATH of a running lab's lab.env")
		return nil
	}
	sh := func(script string) string {
		out, err := exec.Command("sh", "-c", ". "+path+"; "+script).Output()
		must(b, err)
		return strings.TrimSpace(string(out))
	}
	root, token := sh("echo $LAB_ROOT"), strings.TrimPrefix(sh("$LAB_TOKEN_CMD"), "SLURM_JWT=")
	var uid, gid uint32
	_, err := fmt.Sscan(sh(`echo $(id -u "$LAB_SLURMRESTD_USER") $(id -g "$LAB_SLURMRESTD_USER")`), &uid, &gid)
	must(b, err)
	return func() *exec.Cmd {
		cmd := exec.Command("/usr/sbin/slurmrestd", "-a", "rest_auth/jwt")
		cmd.Err = nil // the path refers to a file inside the root of the lab
		cmd.Env = []string{"SLURM_JWT=daemon", "PATH=/usr/sbin:/usr/bin"}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
		cmd.Stdin = strings.NewReader(fmt.Sprintf(pingRequest, "slurm", "v0.0.41", "X-SLURM-USER-TOKEN", token))
		return cmd
	}
}
