package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// statusAt requests path from the gateway that listens on address, and returns
// the status of the answer.
func statusAt(l *harness.Lab, t *testing.T, address, path string, headers ...string) int {
	t.Helper()
	saved := l.URL
	l.URL = "http://" + address
	defer func() { l.URL = saved }()
	return l.Request("GET", path, "", headers...).Status
}

// TestPrefixes checks that prefixes such as rest_auth/ may be omitted from the
// values of -a, -d and -s, and that "latest" means the newest version.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	for _, tt := range []struct {
		args []string
		env  []string
		want map[string]int
	}{
		{args: []string{"-a", "rest_auth/jwt", "-d", "data_parser/v0.0.41", "-s", "openapi/schedctld"},
			want: map[string]int{"/sched/v0.0.41/ping": 200, "/sched/v0.0.43/ping": 404, "/scheddb/v0.0.41/diag": 404}},
		{args: []string{"-a", "jwt", "-d", "v0.0.41", "-s", "schedctld"},
			want: map[string]int{"/sched/v0.0.41/ping": 200, "/sched/v0.0.43/ping": 404, "/scheddb/v0.0.41/diag": 404}},
		{args: []string{"-d", "latest", "-s", "scheddb"},
			want: map[string]int{"/scheddb/v0.0.45/diag": 200, "/scheddb/v0.0.44/diag": 404, "/sched/v0.0.45/ping": 404}},
		{args: []string{"-d", "data_parser/latest+fast"},
			want: map[string]int{"/scheddb/v0.0.45/diag": 200, "/sched/v0.0.45/ping": 200, "/sched/v0.0.44/ping": 404}},
		{env: []string{"SLURMRESTD_DATA_PARSER_PLUGINS=v0.0.40,v0.0.42", "SLURMRESTD_OPENAPI_PLUGINS=slurmctld", "SLURMRESTD_AUTH_TYPES=rest_auth/jwt"},
			want: map[string]int{"/sched/v0.0.40/ping": 200, "/sched/v0.0.41/ping": 404, "/sched/v0.0.42/ping": 200, "/scheddb/v0.0.42/diag": 404}},
		{want: map[string]int{"/sched/v0.0.40/ping": 200, "/sched/v0.0.41/ping": 200, "/sched/v0.0.42/ping": 200, "/sched/v0.0.43/ping": 200, "/sched/v0.0.44/ping": 200, "/sched/v0.0.45/ping": 200, "/scheddb/v0.0.40/diag": 200}},
	} {
		address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
		g := l.StartGateway(t, tt.env, append(tt.args, address)...)
		for path, status := range tt.want {
			if got := statusAt(l, t, address, path); got != status {
				t.Errorf("%q %q: %s: %d, want %d", tt.args, tt.env, path, got, status)
			}
		}
		harness.Must(t, g.Stop())
	}
}

// TestConfiguration checks that the gateway reads the configuration file that
// -f names or, without -f, the file that SCHED_CONF or SLURM_CONF names.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	otherConf := filepath.Join(l.Dir, "etc", "other.conf")
	harness.Must(t, os.WriteFile(otherConf, []byte(strings.Replace(string(text), "ClusterName=demo", "ClusterName=other", 1)), 0o600))
	otherArgs := l.Restd.Args[2 : len(l.Restd.Args)-1] // all arguments but -f and LISTEN
	for _, tt := range []struct {
		name string
		args []string
		env  string
		want string
	}{
		{"-f", []string{"-f", otherConf}, "", "other"},
		{"-f before the variable", []string{"-f", otherConf}, "SCHED_CONF=/nowhere/at/all", "other"},
		{"SCHED_CONF", nil, "SCHED_CONF=" + otherConf, "other"},
		{"SLURM_CONF", nil, "SLURM_CONF=" + l.Conf(), "demo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
			p := l.Restd
			p.Args = append(append(append([]string{}, tt.args...), otherArgs...), address)
			l.StartGatewayPart(t, p, []string{tt.env})
			saved := l.URL
			l.URL = "http://" + address
			defer func() { l.URL = saved }()
			if got := l.Request("GET", "/sched/v0.0.43/ping", "").Want(t, 200).Get("meta", "sched", "cluster"); got != tt.want {
				t.Errorf("cluster %v", got)
			}
		})
	}
}

// TestVerbosity checks that -v makes the gateway log more, and that -vv also
// makes it log its calls to daemons. SCHEDRESTD_DEBUG must set the same levels,
// by number or by name, but must have no effect if -v is given.
func TestVerbosity(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	const none, info, verbose, debug = "", "INFO", "INFO VERBOSE", "INFO VERBOSE DEBUG"
	for _, tt := range []struct{ env, arg, want string }{
		{"", "", none}, // in inetd mode, the gateway prints only the answer by default
		{"", "-v", verbose},
		{"", "--verbose", verbose},
		{"", "-vv", debug},
		{"", "-vvvvvv", debug},
		{"SCHEDRESTD_DEBUG=quiet", "", none},
		{"SCHEDRESTD_DEBUG=0", "", none},
		{"SCHEDRESTD_DEBUG=3", "", info},
		{"SLURMRESTD_DEBUG=info", "", info},
		{"SCHEDRESTD_DEBUG=Verbose", "", verbose},
		{"SCHEDRESTD_DEBUG=5", "", debug},
		{"SCHEDRESTD_DEBUG=debug5", "", debug},
		{"SCHEDRESTD_DEBUG=9", "", debug},
		{"SCHEDRESTD_DEBUG=quiet", "-vv", debug},
		{"SCHEDRESTD_DEBUG=9", "-v", verbose},
		{"SCHED_DEBUG_FLAGS=Network", "", debug},
	} {
		t.Run(tt.env+" "+tt.arg, func(t *testing.T) {
			var args []string
			if tt.arg != "" {
				args = []string{tt.arg}
			}
			cmd := l.InetdCommand(args...)
			cmd.Env = append(cmd.Env, tt.env)
			cmd.Stdin = strings.NewReader("GET http://localhost/sched/v0.0.43/ping HTTP/1.1\nX-SCHED-USER-TOKEN: " + l.OwnToken + "\n\n")
			out, log, status := harness.RunCommand(t, cmd)
			if status != 0 || !strings.HasPrefix(out, "HTTP/1.1 200 ") {
				t.Fatalf("exit status %d: %s\n%s", status, out, log)
			}
			var levels []string
			for _, level := range []string{"WARN", "INFO", "VERBOSE", "DEBUG"} {
				if strings.Contains(log, "level="+level) {
					levels = append(levels, level)
				}
			}
			if got := strings.Join(levels, " "); got != tt.want {
				t.Errorf("logged %q, want %q:\n%s", got, tt.want, log)
			}
			if strings.Contains(log, "daemon connection closed") != (tt.want == debug) {
				t.Errorf("of calls:\n%s", log)
			}
		})
	}
}

// TestDocumentFlags checks the effect of a data parser's flags on the OpenAPI
// document that the gateway prints. With +prefer_refs in v0.0.41 and by default
// in later versions, objects and lists are separate schemas. With +minimize_refs,
// only bodies of several operations are. With +inline_enums, no array of enumerated values is one.
func TestDocumentFlags(t *testing.T) {
	t.Parallel()
	document := func(parser string) (schemas map[string]any, text string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(harness.Bin, "schedrestd"), "-f", "/dev/null", "--generate-openapi-spec", "-d", parser)
		out, err := cmd.Output()
		harness.Must(t, err)
		var doc struct {
			Components struct{ Schemas map[string]any }
		}
		harness.Must(t, json.Unmarshal(out, &doc))
		return doc.Components.Schemas, string(out)
	}
	for parser, named := range map[string]bool{
		"v0.0.41": false, "v0.0.41+prefer_refs": true, "data_parser/v0.0.42": true, "v0.0.42+prefer_refs": true,
		"data_parser/v0.0.42+minimize_refs": false, "v0.0.45+minimize_refs": false,
	} {
		schemas, text := document(parser)
		version, _, _ := strings.Cut(strings.TrimPrefix(parser, "data_parser/"), "+")
		for _, name := range []string{"node", "nodes", "openapi_nodes_resp"} {
			name = version + "_" + name
			if want := named || strings.HasSuffix(name, "_resp"); (schemas[name] != nil) != want || strings.Contains(text, `"#/components/schemas/`+name+`"`) != want {
				t.Errorf("%s: %s is a schema of its own: %v", parser, name, schemas[name] != nil)
			}
		}
	}
	countEnumLists := func(schemas map[string]any) (n int) {
		for _, s := range schemas {
			s, _ := s.(map[string]any)
			if items, _ := s["items"].(map[string]any); s["type"] == "array" && items["enum"] != nil {
				n++
			}
		}
		return n
	}
	schemas, _ := document("v0.0.42")
	inlined, text := document("v0.0.42+inline_enums")
	if countEnumLists(schemas) == 0 || countEnumLists(inlined) != 0 || !strings.Contains(text, `"enum":[`) {
		t.Errorf("lists of words that are schemas: %d, with +inline_enums %d", countEnumLists(schemas), countEnumLists(inlined))
	}
}
