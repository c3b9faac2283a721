package ctld

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/conf"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
)

// TestConfigFiles checks which files the controller sends to machines without a
// configuration: none unless its own says so.
func TestConfigFiles(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside.conf")
	const text = "ClusterName=c\nSchedctldHost=h\nInclude sub/nodes.conf\n"
	write := func(path, text string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(outside, "\n")
	write(filepath.Join(dir, "sub/nodes.conf"), "NodeName=n\n")
	for _, tt := range []struct {
		name, more string
		want       []model.ConfigFile
	}{
		{"not permitted", "", nil},
		{"other parameters", "SchedctldParameters=enable_configlessly,disabled\n", nil},
		{"permitted", "SchedctldParameters=idle_on_node_suspend,Enable_Configless\nInclude " + outside + "\n", []model.ConfigFile{
			{Name: "slurm.conf", Text: text + "SchedctldParameters=idle_on_node_suspend,Enable_Configless\nInclude " + outside + "\n", Exists: true},
			{Name: "sub/nodes.conf", Text: "NodeName=n\n", Exists: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster, _, err := conf.Read(write(filepath.Join(dir, "sched.conf"), text+tt.more))
			if err != nil {
				t.Fatal(err)
			}
			files, err := configFiles(cluster)
			if err != nil {
				t.Fatal(err)
			}
			c, _ := controller(t, Config{ConfigFiles: files})
			got, _, err := newClient(t, c, codec.Newest).ConfigFiles(t.Context(), model.Credential{})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if number, _ := fault.Number(err); tt.want == nil && number != fault.ConfiglessDisabled || tt.want != nil && err != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestConfigFilesAgain checks that a file is sent only if it still could be read
// as a configuration.
func TestConfigFilesAgain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(path string) error
		want   string
	}{
		{"writable by all", func(path string) error { return os.Chmod(path, 0o666) }, "lets other users write it"},
		{"a device", func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) }, "not a regular file"},
		{"long", func(path string) error { return os.Truncate(path, 9<<20) }, "longer than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sched.conf")
			if err := os.WriteFile(path, []byte("ClusterName=c\nSchedctldHost=h\nSchedctldParameters=enable_configless\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cluster, _, err := conf.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.change(path); err != nil {
				t.Fatal(err)
			}
			if files, err := configFiles(cluster); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%d files, %v", len(files), err)
			}
		})
	}
}
