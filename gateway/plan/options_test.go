package plan

import (
	"bytes"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"schedrestd/conf"
	"schedrestd/gateway/plan/option"
	"schedrestd/internal/loglevel"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// parseOptions returns the options that a command line and the environment
// select.
func parseOptions(t *testing.T, args ...string) options {
	t.Helper()
	o := optionsHere()
	f := pflag.NewFlagSet("schedrestd", pflag.ContinueOnError)
	o.AddFlags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := o.Read(f, f.Args()); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOptions checks the effect of each option and variable on the Plan and the
// Setup. A flag must take precedence over its variable, and a variable over the
// configuration.
func TestOptions(t *testing.T) {
	const baseEnv = "SCHEDRESTD_LISTEN=:1 SCHED_JWT=daemon "
	tests := []struct {
		name string
		env  string // NAME=value, separated by spaces
		args string
		conf string // lines to add to the sample
		got  func(*query.WholePlan) any
		want any
	}{
		{name: "user", args: "-u nobody", got: func(c *query.WholePlan) any { return c.Service.UID }, want: uint32(65534)},
		{name: "user, long, last one", args: "-u root --user=nobody", got: func(c *query.WholePlan) any { return c.Service.Name }, want: "nobody"},
		{name: "group", args: "-u nobody -g 7", got: func(c *query.WholePlan) any { return []any{c.Service.GID, c.Service.Options} }, want: []any{uint32(7), "-u nobody -g 7"}},
		{name: "neither", got: func(c *query.WholePlan) any { return c.Service.HasUser || c.Service.HasGroup }, want: false},
		{name: "threads", args: "-t 5", got: func(c *query.WholePlan) any { return int(c.Threads) }, want: 5},
		{name: "per source", args: "--max-per-source 5", got: func(c *query.WholePlan) any { return int(c.PerSource) }, want: 5},
		{name: "identities", args: "--max-identities 5", got: func(c *query.WholePlan) any { return int(c.Identities) }, want: 5},
		{name: "body", args: "--max-body 3M", got: func(c *query.WholePlan) any { return c.Setup.Limits.Body }, want: uint32(3 << 20)},
		{name: "body, default", got: func(c *query.WholePlan) any { return c.Setup.Limits.Body }, want: uint32(50 << 20)},
		{name: "socket", args: "--socket-mode 0660 --socket-group 9", got: func(c *query.WholePlan) any {
			return []any{fs.FileMode(c.SocketMode).String(), c.HasSocketGroup, c.SocketGID}
		}, want: []any{"-rw-rw----", true, uint32(9)}},
		{name: "socket, tokens", got: modeOf, want: "-rw-rw-rw-"},
		{name: "socket, local alone", args: "-a rest_auth/local unix:/s", conf: "AuthInfo=socket=/c", got: modeOf, want: "-rw-------"},
		{name: "SchedUser", conf: "SchedUser=nobody", got: func(c *query.WholePlan) any {
			return []any{c.Service.SchedUser, c.Service.SchedUID, c.Service.Privileged}
		}, want: []any{"nobody", uint32(65534), []string{"nobody", "root"}}},

		{name: "listen", args: ":2 unix:/s", got: listenOf, want: []string{":2", "unix:/s"}},
		{name: "listen, variable", got: listenOf, want: []string{":1"}},
		{name: "listen, several", env: "SCHEDRESTD_LISTEN=:3,,unix:/s", got: listenOf, want: []string{":3", "unix:/s"}},
		{name: "listen, Slurm's", env: "SCHEDRESTD_LISTEN= SLURMRESTD_LISTEN=:4", got: listenOf, want: []string{":4"}},
		{name: "connections", env: "SCHEDRESTD_MAX_CONNECTIONS=8", got: func(c *query.WholePlan) any { return int(c.Connections) }, want: 8},
		{name: "connections, flag first", env: "SCHEDRESTD_MAX_CONNECTIONS=8", args: "--max-connections 9", got: func(c *query.WholePlan) any { return int(c.Connections) }, want: 9},

		{name: "parsers", args: "-d latest+fast,data_parser/v0.0.40", got: parsersOf, want: []work.Parser{{Version: 40}, {Version: 45, Flags: 1}}},
		{name: "parsers, joined", args: "-d v0.0.41 -d v0.0.42", got: parsersOf, want: []work.Parser{{Version: 41}, {Version: 42}}},
		{name: "parsers, variable", env: "SLURMRESTD_DATA_PARSER_PLUGINS=v0.0.41", got: parsersOf, want: []work.Parser{{Version: 41}}},
		{name: "parsers, flag first", env: "SCHEDRESTD_DATA_PARSER_PLUGINS=v9", args: "-d v0.0.42", got: parsersOf, want: []work.Parser{{Version: 42}}},
		{name: "auth", args: "-a rest_auth/jwt", got: authOf, want: "jwt"},
		{name: "auth, joined", args: "-a jwt -a local", got: authOf, want: "jwt local"},
		{name: "auth, local alone", args: "-a local unix:/s", got: authOf, want: "local"},
		{name: "auth, default", got: authOf, want: "jwt local"},
		{name: "auth, variable", env: "SCHEDRESTD_AUTH_TYPES=jwt", got: authOf, want: "jwt"},
		{name: "auth, flag first", env: "SCHEDRESTD_AUTH_TYPES=jwt", args: "-a local unix:/s", got: authOf, want: "local"},
		{name: "auth, without the word", env: "SCHED_JWT=", args: "unix:/s", got: authOf, want: "local"},
		{name: "auth, a user's token is ignored", env: "SCHED_JWT=a.b.c", args: "-a local unix:/s", got: authOf, want: "local"},
		{name: "content", args: "-s openapi/scheddb", got: contentOf, want: work.ContentAccounting},
		{name: "content, Slurm's name", args: "-s slurmctld", got: contentOf, want: work.ContentController},
		{name: "content, variable", env: "SLURMRESTD_OPENAPI_PLUGINS=schedctld", got: contentOf, want: work.ContentController},
		{name: "content, default", got: contentOf, want: work.ContentController | work.ContentAccounting | work.ContentUtil},
		{name: "content, util", args: "-s slurmctld,slurmdbd,util", got: contentOf, want: work.ContentController | work.ContentAccounting | work.ContentUtil},
		{name: "content, util, variable", env: "SLURMRESTD_OPENAPI_PLUGINS=openapi/util,openapi/slurmctld", got: contentOf, want: work.ContentController | work.ContentUtil},
		{name: "content, no accounting", conf: "AccountingStorageType=accounting_storage/none", got: contentOf, want: work.ContentController | work.ContentUtil},

		{name: "JSON", env: "SCHED_JSON=pretty", got: func(c *query.WholePlan) any { return c.Setup.JSON }, want: work.Pretty},
		{name: "JSON, the nearer name first", env: "SCHED_JSON=pretty SCHEDRESTD_JSON=compact", got: func(c *query.WholePlan) any { return c.Setup.JSON }, want: work.Compact},
		{name: "YAML, default", env: "SLURM_JSON=pretty", got: func(c *query.WholePlan) any { return c.Setup.YAML }, want: work.Pretty | work.NoTag},
		{name: "YAML, on one line", env: "SLURM_YAML=compact", got: func(c *query.WholePlan) any { return c.Setup.YAML }, want: work.Compact},
		{name: "YAML", env: "SLURM_YAML=pretty", got: func(c *query.WholePlan) any { return c.Setup.YAML }, want: work.Pretty},
		{name: "connections and threads of the configuration", conf: "SlurmrestdParameters=conmgr_max_connections=7,workerpool_threads=6", got: sizesOf, want: [2]uint32{7, 6}},
		{name: "connections and threads, options first", args: "--max-connections 8 -t 9", conf: "SlurmrestdParameters=conmgr_max_connections=7,conmgr_threads=6", got: sizesOf, want: [2]uint32{8, 9}},
		{name: "connections and threads, too many", conf: "SlurmrestdParameters=conmgr_threads=70000", got: sizesOf, want: [2]uint32{124, 4096}},
		{name: "layouts of the configuration", conf: "SerializerParameters=pretty", got: layoutsOf, want: [2]work.Layout{work.Pretty, work.Pretty}},
		{name: "layouts of the configuration, the last word", conf: "SerializerParameters=pretty,compact", got: layoutsOf, want: [2]work.Layout{work.Compact, work.Compact}},
		{name: "layouts of the configuration, without tags", conf: "SerializerParameters=no_tag,pretty", got: layoutsOf, want: [2]work.Layout{work.Pretty, work.Pretty | work.NoTag}},
		{name: "layouts of the configuration, only without tags", conf: "SerializerParameters=no_tag", got: layoutsOf, want: [2]work.Layout{work.Compact, work.Pretty | work.NoTag}},
		{name: "layouts, words without effect", env: "SLURM_JSON=no_tag,complex SLURM_YAML=complex", conf: "SerializerParameters=pretty", got: layoutsOf, want: [2]work.Layout{work.Pretty, work.Pretty}},
		{name: "layouts, words with and without effect", env: "SLURM_JSON=pretty,complex SLURM_YAML=complex,no_tag", got: layoutsOf, want: [2]work.Layout{work.Pretty, work.Pretty | work.NoTag}},
		{name: "layouts, variables first", env: "SLURM_JSON=compact SCHEDRESTD_YAML=compact", conf: "SerializerParameters=pretty", got: layoutsOf, want: [2]work.Layout{work.Compact, work.Compact}},
		{name: "YAML, on one line without tags", env: "SCHEDRESTD_YAML=compact,no_tag", got: func(c *query.WholePlan) any { return c.Setup.YAML }, want: work.NoTag},
		{name: "layouts, in any case", env: "SLURM_JSON=Pretty SCHEDRESTD_YAML=COMPACT,No_Tag", got: layoutsOf, want: [2]work.Layout{work.Pretty, work.NoTag}},
		{name: "switches, in any case", env: "SLURMRESTD_SECURITY=Disable_Unshare_Files,strict_BODIES", got: func(c *query.WholePlan) any { return c.Switches.DisableUnshareFiles && c.Setup.Strict }, want: true},
		{name: "YAML, only without tags", env: "SLURM_YAML=no_tag", got: func(c *query.WholePlan) any { return c.Setup.YAML }, want: work.Pretty | work.NoTag},
		{name: "layouts of the configuration, on one line without tags", conf: "SerializerParameters=no_tag,compact", got: layoutsOf, want: [2]work.Layout{work.Compact, work.NoTag}},
		{name: "YAML, without tags", env: "SCHEDRESTD_YAML=pretty,no_tag", got: func(c *query.WholePlan) any { return c.Setup.YAML }, want: work.Pretty | work.NoTag},
		{name: "statuses", env: "SCHEDRESTD_RESPONSE_STATUS_CODES=200,404,Default,404", got: func(c *query.WholePlan) any { return c.Setup.Statuses }, want: []string{"200", "404", "default"}},
		{name: "answers, default", got: func(c *query.WholePlan) any { return c.Setup.Limits.Answers }, want: uint32(256 << 20)},
		{name: "names", env: "SCHEDRESTD_NAMES=slurm", got: func(c *query.WholePlan) any { return c.Setup.Names }, want: work.NamesSlurm},
		{name: "names, of a file of Slurm's", conf: "SlurmctldTimeout=30\nSlurmUser=root", got: func(c *query.WholePlan) any { return c.Setup.Names }, want: work.NamesSched | work.NamesSlurm},
		{name: "switches", env: "SCHEDRESTD_SECURITY=worker_per_connection", got: func(c *query.WholePlan) any { return c.Switches == (ipc.Switches{WorkerPerConnection: true}) }, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := writeConfig(t, sample+tt.conf+"\n")
			for pair := range strings.FieldsSeq(baseEnv + tt.env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			o := parseOptions(t, strings.Fields(tt.args)...)
			cluster, _, err := conf.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := o.plan(cluster, 0, listening, discard)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.got(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func modeOf(c *query.WholePlan) any { return fs.FileMode(c.SocketMode).String() }

func listenOf(c *query.WholePlan) any {
	var list []string
	for _, l := range c.Listen {
		list = append(list, l.Text)
	}
	return list
}

func parsersOf(c *query.WholePlan) any { return c.Setup.Parsers }
func contentOf(c *query.WholePlan) any { return c.Setup.Content }

func authOf(c *query.WholePlan) any {
	var list []string
	if c.Setup.JWT {
		list = append(list, "jwt")
	}
	if c.Setup.Local {
		list = append(list, "local")
	}
	return strings.Join(list, " ")
}

func sizesOf(c *query.WholePlan) any { return [2]uint32{c.Connections, c.Threads} }

func layoutsOf(c *query.WholePlan) any { return [2]work.Layout{c.Setup.JSON, c.Setup.YAML} }

// TestLevels checks the order of precedence for the log level: -v,
// SCHEDRESTD_DEBUG, the debug flags, the default level.
func TestLevels(t *testing.T) {
	tests := []struct {
		env, args string
		conf      []string
		want      slog.Level
	}{
		{want: slog.LevelInfo},
		{args: "-v", want: -2},
		{args: "-vv", want: slog.LevelDebug},
		{args: "-v -v -v", want: -5},
		{args: "-vvvvvv", want: -8},
		{args: "-vvvvvvvv", want: -8},
		{args: "--verbose=2", want: slog.LevelDebug},
		{env: "SCHEDRESTD_DEBUG=0", want: 127},
		{env: "SCHEDRESTD_DEBUG=quiet", want: 127},
		{env: "SLURMRESTD_DEBUG=Error", want: slog.LevelError},
		{env: "SCHEDRESTD_DEBUG=3", want: slog.LevelInfo},
		{env: "SCHEDRESTD_DEBUG=9", want: -8},
		{env: "SCHEDRESTD_DEBUG=debug5", want: -8},
		{env: "SCHEDRESTD_DEBUG=quiet", args: "-v", want: -2},
		{env: "SCHEDRESTD_DEBUG=nonsense", args: "-v", want: -2},
		{env: "SLURM_DEBUG=error", want: slog.LevelError},
		{env: "SLURM_DEBUG=error SLURMRESTD_DEBUG=quiet", want: 127},
		{env: "SLURMRESTD_DEBUG=error SLURMRESTD_DEBUG_STDERR=quiet", want: 127},
		{env: "SLURMRESTD_DEBUG=error SLURMRESTD_DEBUG_SYSLOG=quiet", want: slog.LevelError},
		{env: "SLURMRESTD_DEBUG=error SLURMRESTD_DEBUG_SYSLOG=quiet SCHEDRESTD_LOG=syslog", want: 127},
		{env: "SLURMRESTD_DEBUG=error SLURMRESTD_DEBUG_STDERR=quiet SCHEDRESTD_LOG=journald", want: slog.LevelError},
		{env: "SLURMRESTD_DEBUG_STDERR=quiet SCHEDRESTD_LOG=json", want: 127},
		{env: "SLURMRESTD_DEBUG_STDERR=quiet", args: "-v", want: -2},
		{env: "SCHED_DEBUG_FLAGS=Network", want: slog.LevelDebug},
		{env: "SCHED_DEBUG_FLAGS=Backfill", conf: []string{"Network"}, want: slog.LevelInfo},
		{conf: []string{"Protocol"}, want: slog.LevelDebug},
		{env: "SCHEDRESTD_DEBUG=info", conf: []string{"Protocol"}, want: slog.LevelInfo},
	}
	for _, tt := range tests {
		t.Run(tt.env+" "+tt.args, func(t *testing.T) {
			writeConfig(t, "")
			for setting := range strings.FieldsSeq(tt.env) {
				name, value, _ := strings.Cut(setting, "=")
				t.Setenv(name, value)
			}
			o := parseOptions(t, strings.Fields(tt.args)...)
			if got := o.Level(slog.LevelInfo, &conf.Cluster{DebugFlags: tt.conf}); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}

// TestLevelNames checks the names of levels in the log. For each level at which
// the gateway logs, the log must use the name that SCHEDRESTD_DEBUG accepts.
func TestLevelNames(t *testing.T) {
	var out bytes.Buffer
	var minLevel slog.LevelVar
	minLevel.Set(-8)
	log := loglevel.New("", &out, &minLevel)
	for _, l := range option.Levels[2:] {
		if l.Level < slog.LevelDebug {
			continue
		}
		out.Reset()
		log.Log(t.Context(), l.Level, "text")
		if want := "level=" + strings.ToUpper(l.Name) + " "; !strings.Contains(out.String(), want) {
			t.Errorf("want %q in %q", want, out.String())
		}
	}
}

// TestHelp checks that the help text fits a terminal, and lists every flag.
func TestHelp(t *testing.T) {
	writeConfig(t, "")
	var out, errOut bytes.Buffer
	if status := runHere([]string{"-h"}, &out, &errOut); status != 0 || errOut.Len() > 0 {
		t.Fatalf("exit status %d, %s", status, &errOut)
	}
	lines := strings.Split(out.String(), "\n")
	for _, line := range lines {
		if len([]rune(line)) > 80 {
			t.Errorf("longer than 80 columns: %s", line)
		}
	}
	if len(lines) > 45 {
		t.Errorf("%d lines are more than a terminal shows", len(lines))
	}
	for _, want := range []string{"unix:/", "https://", "127.0.0.1:6820", "| schedrestd"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no example with %s", want)
		}
	}
	newCommand(new(fakeHost), startHere(), &errOut).Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "--"+f.Name+" ") }) {
			t.Errorf("--%s is not there", f.Name)
		}
	})
}
