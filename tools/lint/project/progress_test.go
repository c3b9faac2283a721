package project

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestProgress checks what a build prints: the number of compiled packages, each
// error once, a hint about the cause, and nothing if nothing is compiled.
func TestProgress(t *testing.T) {
	program, err := filepath.Abs(filepath.Join(root, "tools/progress"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir("bin", 0o755); err != nil {
		t.Fatal(err)
	}
	// This go answers "go env" with /c, and lists no packages.
	if err := os.WriteFile("go", []byte("#!/bin/sh\n[ $1 = list ] || echo /c\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	const offline = `a.go:1:2: m@v1: Get "https://proxy.golang.org/m.zip": dial tcp: no such host`
	for _, tt := range []struct {
		name, build, want string
		status            int
	}{
		{name: "nothing to compile", build: "true"},
		{name: "the build does not inherit the lock", build: "[ ! -e /proc/$$/fd/9 ]"},
		{name: "few packages", build: "printf 'internal/goarch\nschedrestd/api\n'"},
		{name: "many packages", build: "printf 'p/%s\n' $(seq 60)", want: "compiled 25 of at most 0 packages\ncompiled 50 of at most 0 packages\n"},
		{name: "error", build: "printf 'p/q\n# p/q\nq.go:1:2: undefined: x\n'; exit 1", want: "# p/q\nq.go:1:2: undefined: x\n", status: 1},
		{name: "no network", build: "printf 'go: downloading m v1\n'; printf '%s\n%s\n' '" + offline + "' '" + offline + "'; exit 1", status: 1,
			want: "go: downloading m v1\n" + offline + "\nhint: the first build downloads Go modules: connect to the network, set GOPROXY to a mirror's URL, or copy /c from another machine\n"},
		{name: "full disk", build: "echo 'write /c/x: no space left on device'; exit 1", status: 1,
			want: "write /c/x: no space left on device\nhint: a build needs 1 GB for /c and /c, and for a while 200 MB in /t\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(program, "sh", "-c", tt.build)
			cmd.Env = append(os.Environ(), "GO=./go", "TMPDIR=/t")
			out, err := cmd.CombinedOutput()
			status := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				status = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if string(out) != tt.want || status != tt.status {
				t.Errorf("status %d, want %d; output\n%s\nwant\n%s", status, tt.status, out, tt.want)
			}
		})
	}
}
