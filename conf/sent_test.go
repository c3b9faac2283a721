package conf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadSent checks a configuration that a controller sent: which files it may
// include, and what errors and warnings call them.
func TestReadSent(t *testing.T) {
	local := filepath.Join(t.TempDir(), "local.conf")
	if err := os.WriteFile(local, []byte("MessageTimeout=77\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const main = "ClusterName=c\nSlurmctldHost=h\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		used  []string
		warn  string
		err   string
	}{
		{name: "alone", files: map[string]string{"slurm.conf": main, "oci.conf": "x"}, used: []string{"slurm.conf"}},
		{name: "includes", files: map[string]string{"slurm.conf": main + "Include a.conf\nInclude ./d/b.conf\n", "a.conf": "Include %c.conf\n", "c.conf": "", "d/b.conf": "Colour=1\n"},
			used: []string{"slurm.conf", "a.conf", "c.conf", "d/b.conf"}, warn: "ctl:6817/d/b.conf:1: Colour: unknown key, ignored"},
		{name: "includes a file of this machine", files: map[string]string{"slurm.conf": main + "Include " + local + "\n"}, used: []string{"slurm.conf"}},
		{name: "not sent", files: map[string]string{"slurm.conf": main + "Include a.conf\n"},
			err: "ctl:6817/slurm.conf:3: ctl:6817/a.conf: the controller did not send this file (an Include with a relative name is sent by the controller; other files need an absolute path)"},
		{name: "outside", files: map[string]string{"slurm.conf": main + "Include ../../../etc/passwd\n"},
			err: "ctl:6817/slurm.conf:3: ../../etc/passwd: the controller did not send this file (an Include with a relative name is sent by the controller; other files need an absolute path)"},
		{name: "incomplete", files: map[string]string{"slurm.conf": "ClusterName=c\nSlurmctldPort=1\n"}, err: "ctl:6817/slurm.conf: SlurmctldHost is missing"},
		{name: "bad value", files: map[string]string{"slurm.conf": main + "SlurmctldPort=x\n"}, err: "ctl:6817/slurm.conf:3: SlurmctldPort: want a port from 1 to 65535"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, warnings, err := ReadSent(Sent{Origin: "ctl:6817", Files: tt.files})
			text, warning := "", ""
			if err != nil {
				text = err.Error()
			}
			for _, w := range warnings {
				warning += w.String()
			}
			if text != tt.err || warning != tt.warn {
				t.Errorf("error %q, want %q; warnings %q", text, tt.err, warning)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tt.used, c.Sent); diff != "" || c.Path != "ctl:6817/slurm.conf" {
				t.Errorf("%s (-want +got):\n%s", c.Path, diff)
			}
		})
	}
}
