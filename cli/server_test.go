package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"schedrestd/internal/socket/sockettest"
)

// TestServer checks which server a command uses.
func TestServer(t *testing.T) {
	if _, err := os.Stat(usersSocket); err == nil {
		t.Skip("this machine has a gateway")
	}
	if _, err := os.Stat("/etc/slurm/slurm.conf"); err == nil {
		t.Skip("this machine has a configuration")
	}
	for _, tt := range []struct {
		name, args  string
		url, config string // environment
		servers     string
		want        server
		wantErr     string
	}{
		{name: "nothing", want: server{url: defaultURL, guessed: true}},
		{name: "the address that is tried without any", url: defaultURL, want: server{url: defaultURL}},
		{name: "--url", args: "--url u", url: "v", config: "c", want: server{url: "u"}},
		{name: "-f", args: "-f d", url: "v", config: "c", want: server{config: "d"}},
		{name: "both", args: "-f d --url u", wantErr: "exclude each other"},
		{name: "SCHED_URL", url: "v", config: "c", want: server{url: "v"}},
		{name: "SCHED_URL is empty", url: "empty", config: "c", wantErr: "SCHED_URL is set but empty"},
		{name: "--url, and SCHED_URL is empty", args: "--url u", url: "empty", want: server{url: "u"}},
		{name: "SCHED_CONF", config: "c", want: server{config: "c"}},
		{name: "no configuration on the command line", args: "-f /dev/null", url: "v", want: server{url: "v"}},
		{name: "no configuration on the command line, with one in the environment", args: "-f /dev/null", config: "c", want: server{url: defaultURL, guessed: true}},
		{name: "SCHED_CONF_SERVER", servers: "s", want: server{confServers: "s"}},
		{name: "SCHED_CONF_SERVER and SCHED_URL", servers: "s", url: "v", want: server{url: "v"}},
		{name: "SCHED_CONF_SERVER and SCHED_CONF", servers: "s", config: "c", want: server{config: "c"}},
		{name: "SCHED_CONF_SERVER and no configuration", servers: "s", config: "/dev/null", want: server{url: defaultURL, guessed: true}},
		{name: "no configuration in the environment", config: "/dev/null", want: server{url: defaultURL, guessed: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range map[string]string{"SCHED_URL": tt.url, "SLURM_URL": ""} {
				t.Setenv(name, value) // restores the old value after the test
				if value == "" {
					os.Unsetenv(name)
				}
			}
			if tt.url == "empty" {
				os.Setenv("SCHED_URL", "")
			}
			t.Setenv("SCHED_CONF", tt.config)
			t.Setenv("SLURM_CONF", "")
			t.Setenv("SCHED_CONF_SERVER", tt.servers)
			var o options
			root := &cobra.Command{Use: "schedctl"}
			root.PersistentFlags().StringP("config", "f", "", "")
			cmd := &cobra.Command{Use: "jobs", RunE: func(*cobra.Command, []string) error {
				got, err := o.server("token")
				if got != tt.want || (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %+v, %v", got, err)
				}
				return nil
			}}
			o.connectFlags(cmd)
			root.AddCommand(cmd)
			root.SetArgs(append([]string{"jobs"}, strings.Fields(tt.args)...))
			if err := root.Execute(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPingAndShow checks that ping and show use the gateway.
func TestPingAndShow(t *testing.T) {
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"ping", 0, "head primary UP 120 us from the gateway at http"},
		{"show node", 0, "node1    MIXED,DRAIN  64    32     512000  900   a_\\x1b]0;title\\a\n"},
		{"show node node2", 0, "name=node2\nstate=IDLE\n"},
		{"show node nowhere", statusUnknown, "node nowhere is unknown"},
		{"show job", 0, "12  train\\x1b[2J  ann   RUNNING"},
		{"show job 5", 0, "job_id=5\nname=sub\n"},
		{"show job 99", statusUnknown, "job 99 is unknown"},
		{"show", statusUsage, "missing argument: what to show"},
	} {
		status, out, errOut := runCommand(t, &gateway{states: []string{"PENDING"}}, strings.Fields(tt.args)...)
		if status != tt.status || !strings.Contains(out+errOut, tt.want) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: status %d, %s%s", tt.args, status, out, errOut)
		}
	}
}

// TestWithoutGateway checks the error and the hints if the daemons of a
// configuration can't be reached, and that options for a gateway are refused.
func TestWithoutGateway(t *testing.T) {
	path := filepath.Join(sockettest.Dir(t), "c") // short, because hints shorten long paths
	if err := os.WriteFile(path, []byte("ClusterName=c\nSchedctldHost=h(127.0.0.1)\nSchedctldPort=1\nSchedUser=root\nAuthInfo=socket=/nowhere/s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"ping", statusUnavailable, "unix /nowhere/s: "},
		{"jobs", statusUnavailable, "unix /nowhere/s: "},
		{"jobs", statusUnavailable, "this is the controller of " + path},
		{"jobs --cacert c", statusUsage, "need the address of a gateway"},
	} {
		status, out, errOut := runCommand(t, &gateway{}, append(strings.Fields(tt.args), "-f", path)...)
		if status != tt.status || !strings.Contains(errOut, tt.want) || out != "" {
			t.Errorf("%s: status %d, %s%s", tt.args, status, out, errOut)
		}
	}
}
