package cli

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeClusters writes a file of clusters, and makes it the one that commands read.
func writeClusters(t *testing.T, text string) (path string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	path = filepath.Join(home, ".config", "sched", "clusters")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadClusters checks the lines of the file of clusters, and which files are
// refused.
func TestReadClusters(t *testing.T) {
	for _, tt := range []struct{ name, text, want, wantErr string }{
		{"lines", "# comment\n\na https://a.example.org ~/a.token # mine\nb\tunix:/run/b/socket\nc http://c:6820 /etc/c\n",
			"a https://a.example.org HOME/a.token|b unix:/run/b/socket |c http://c:6820 /etc/c", ""},
		{"empty", "", "", ""},
		{"no address", "\na\n", "", "line 2: not a cluster"},
		{"too much", "a b /c d\n", "", "line 1: not a cluster"},
		{"a relative path", "a http://a token\n", "", "line 1: not a cluster"},
		{"a long line", strings.Repeat("x", 70_000), "", "token too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := writeClusters(t, tt.text)
			list, err := readClusters(path)
			var got []string
			for _, c := range list {
				got = append(got, strings.ReplaceAll(c.name+" "+c.url+" "+c.tokenFile, os.Getenv("HOME"), "HOME"))
			}
			if strings.Join(got, "|") != tt.want || (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	path := writeClusters(t, "a http://a\n")
	if err := os.Chmod(path, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := readClusters(path); err == nil || !strings.Contains(err.Error(), "other users can change") {
		t.Errorf("a file that others can change: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 1234, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := readClusters(path); err == nil || !strings.Contains(err.Error(), "other users can change") {
			t.Errorf("a file of another user: %v", err)
		}
	}
}

// TestSelectedCluster checks which cluster a command uses, and with which token.
func TestSelectedCluster(t *testing.T) {
	g := &gateway{t: t, states: []string{"PENDING"}}
	for _, tt := range []struct {
		name, args, cluster, url string
		status                   int
		want                     string
	}{
		{name: "the option", args: "ping --cluster b", want: "from the gateway at http://"},
		{name: "the variable", args: "ping", cluster: "b", want: "from the gateway at http://"},
		{name: "the option first", args: "ping --cluster b", cluster: "a", want: "from the gateway at http://"},
		{name: "the option and SCHED_URL", args: "ping --cluster b", url: "http://127.0.0.1:1", want: "from the gateway at http://"},
		{name: "--url before the variable", args: "ping --url http://127.0.0.1:1/x", cluster: "b", status: statusDenied, want: "the token in SCHED_JWT is invalid"},
		{name: "-f before the variable", args: "ping -f /nowhere", cluster: "b", status: statusDenied, want: "the token in SCHED_JWT is invalid"},
		{name: "both options", args: "ping --cluster b --url http://127.0.0.1:1", status: statusUsage, want: "--cluster excludes --url"},
		{name: "both variables", args: "ping", cluster: "b", url: "http://127.0.0.1:1", status: statusUsage, want: "SCHED_CLUSTER and SCHED_URL exclude each other"},
		{name: "an unknown cluster", args: "ping --cluster x\x1b[2J", status: statusUnknown, want: `cluster x\x1b[2J is not in`},
		{name: "no token", args: "ping --cluster a", status: statusDenied, want: "name a file that contains a token"},
		{name: "another token", args: "ping --cluster a --token-file TOKEN", status: statusUnavailable, want: "127.0.0.1:1"},
		{name: "the list", args: "clusters", want: "  /nowhere/token\n"},
		{name: "usage has another option", args: "usage --cluster b --help", want: "CLUSTERS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(g)
			defer server.Close()
			writeClusters(t, "a http://127.0.0.1:1 /nowhere/token\nb "+server.URL+" ~/b.token\n")
			file := filepath.Join(os.Getenv("HOME"), "b.token")
			if err := os.WriteFile(file, []byte(testToken), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("SCHED_CLUSTER", tt.cluster)
			t.Setenv("SCHED_JWT", "a token of another cluster")
			if t.Setenv("SCHED_URL", tt.url); tt.url == "" {
				os.Unsetenv("SCHED_URL")
			}
			status, out, errOut := runHere(t, strings.Fields(strings.ReplaceAll(tt.args, "TOKEN", file))...)
			if status != tt.status || !strings.Contains(out+errOut, tt.want) {
				t.Errorf("status %d, %s%s", status, out, errOut)
			}
		})
	}
}
