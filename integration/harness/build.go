package harness

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Root is the directory of the sources, and Bin is the directory of the built
// programs. Main sets both.
var Root, Bin string

// Main builds the programs and runs the package's tests. Each package calls it
// in TestMain. If INTEGRATION_BIN is set, Main builds nothing and uses the
// programs in that directory.
func Main(m *testing.M) {
	flag.Parse()
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	code := m.Run()
	StopBrowser()
	os.Exit(code)
}

func build() (err error) {
	if Root, err = root(); err != nil {
		return err
	}
	Bin = cmp.Or(os.Getenv("INTEGRATION_BIN"), filepath.Join(Root, "bin"))
	if os.Getenv("INTEGRATION_BIN") == "" {
		if err := makeBuild(); err != nil {
			return err
		}
	}
	return statPrograms()
}

// root returns the nearest parent directory that contains a go.mod.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("find go.mod: no directory above has one")
		}
		dir = filepath.Dir(dir)
	}
}

// makeBuild builds the programs. It takes a lock, because the tests of several
// packages may start at the same time.
func makeBuild() error {
	dir, err := os.Open(Root)
	if err != nil {
		return err
	}
	defer dir.Close() // releases the lock
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", Root, err)
	}
	out, err := exec.Command("make", "-s", "-C", Root, "build").CombinedOutput()
	if err != nil {
		return fmt.Errorf("make build: %w\n%s", err, out)
	}
	return nil
}

// statPrograms reads the metadata of each program, so that "go test" does not
// reuse results of tests after a program has changed. "go test" records which
// files a test reads, but not which programs it starts.
func statPrograms() error {
	programs, err := filepath.Glob(filepath.Join(Bin, "sched*"))
	if err == nil && len(programs) == 0 {
		err = fmt.Errorf("find programs: none in %s", Bin)
	}
	for _, path := range programs {
		if _, statErr := os.Stat(path); statErr != nil {
			err = statErr
		}
	}
	return err
}
