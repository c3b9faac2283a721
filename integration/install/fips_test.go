package install

import (
	"debug/buildinfo"
	"debug/elf"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"schedrestd/integration/harness"
)

// TestFIPS checks that "make FIPS=1" builds static programs that run in FIPS 140-3
// mode, and that no variable of the user who starts the gateway switches it off.
func TestFIPS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeIn(t, "package-programs", "FIPS=1", "GOARCH="+runtime.GOARCH, "PACKAGES="+dir, "PROGRAMS=schedrestd schedrestd-config")
	bin := filepath.Join(dir, "work", runtime.GOARCH, "bin")
	cmd := exec.Command(filepath.Join(bin, "schedrestd"), "--version")
	cmd.Env = []string{"GODEBUG=fips140=off", "PATH=/nonexistent"}
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(`^schedrestd .*, FIPS 140-3 module v\d\S*\n$`).Match(out) {
		t.Errorf("%v, printed %q", err, out)
	}
	for _, name := range []string{"schedrestd", "schedrestd-config"} {
		path := filepath.Join(bin, name)
		program, err := elf.Open(path)
		harness.Must(t, err)
		defer program.Close()
		if libraries, err := program.ImportedLibraries(); len(libraries) > 0 || program.Section(".interp") != nil {
			t.Errorf("%s is not static: %q, %v", name, libraries, err)
		}
		info, err := buildinfo.ReadFile(path)
		harness.Must(t, err)
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if !regexp.MustCompile(`^v\d`).MatchString(settings["GOFIPS140"]) {
			t.Errorf("%s: GOFIPS140=%q", name, settings["GOFIPS140"])
		}
	}
}
