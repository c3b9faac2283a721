package plan

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// tablesHelperMode is the argument that makes this test binary print its
// identity and its environment, and exit. The tests run the binary with this
// argument in place of the worker's program.
const tablesHelperMode = "print-and-end"

func init() {
	if len(os.Args) != 3 || os.Args[1] != tablesHelperMode {
		return
	}
	status, _ := os.ReadFile("/proc/self/status")
	groups, _ := os.Getgroups()
	descriptors, _ := os.ReadDir("/proc/self/fd")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "NoNewPrivs:") || strings.HasPrefix(line, "CapEff:") {
			fmt.Print(line)
		}
	}
	fmt.Println("uid", os.Getuid(), "gid", os.Getgid(), "groups", groups)
	for _, d := range descriptors {
		if target, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil && (strings.HasPrefix(target, "/etc/") || strings.HasPrefix(target, "socket:")) {
			fmt.Println("inherited", target)
		}
	}
	for _, v := range os.Environ() {
		fmt.Println("environment", v)
	}
	if os.Args[2] == "fail" {
		fmt.Fprintln(os.Stderr, "what is\x1b[31m wrong")
		os.Exit(3)
	}
	os.Exit(0)
}

// TestTables checks that the program that runTables starts inherits only its
// pipes.
func TestTables(t *testing.T) {
	t.Setenv("SCHED_JWT", "planted")
	leaked, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer leaked.Close()
	o := optionsHere()
	var out bytes.Buffer
	if err := o.runTables([]string{tablesHelperMode, "well"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"inherited", "planted"} {
		if !strings.Contains(out.String(), "uid ") || strings.Contains(out.String(), unwanted) {
			t.Errorf("%q in:\n%s", unwanted, &out)
		}
	}

	err = o.runTables([]string{tablesHelperMode, "fail"}, &out)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "what is") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
	if err := o.runTables([]string{tablesHelperMode, "well"}, fullWriter{}); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("an output that fails: %v", err)
	}
}

// A fullWriter fails at each write, like a full disk.
type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("no room") }
