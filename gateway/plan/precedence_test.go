package plan

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/conf"
	"schedrestd/gateway/plan/option"
	"schedrestd/internal/zone"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A precedenceCase tests one variable. It contains a value of the variable and
// the effect of this value. It also contains other settings: a flag, which
// takes precedence over the variable, and a line of the configuration, which
// does not.
type precedenceCase struct {
	value      string
	want       any    // effect of value
	otherValue string // another valid value, for both spellings together
	args       string // the flag with another value; "" if there is no flag
	flagWant   any    // effect of that flag
	configLine string // line of the configuration with another value
	got        func(o options, c *query.WholePlan, cluster *conf.Cluster) any
}

// TestPrecedence checks that every variable takes precedence over the
// configuration, and that its flag takes precedence over the variable. A
// variable must have the same effect in both spellings, and there must be an
// error if both are set to different values.
func TestPrecedence(t *testing.T) {
	level := func(o options, _ *query.WholePlan, c *conf.Cluster) any { return o.Level(slog.LevelInfo, c) }
	setup := func(get func(work.Setup) any) func(options, *query.WholePlan, *conf.Cluster) any {
		return func(_ options, c *query.WholePlan, _ *conf.Cluster) any { return get(c.Setup) }
	}
	config := func(get func(*query.WholePlan) any) func(options, *query.WholePlan, *conf.Cluster) any {
		return func(_ options, c *query.WholePlan, _ *conf.Cluster) any { return get(c) }
	}
	tests := map[string]precedenceCase{
		"SCHED_CONF": {value: "/one", want: "/one", otherValue: "/two", args: "-f /three", flagWant: "/three",
			got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any {
				path, err := conf.Find(o.Conf)
				if err != nil {
					return err
				}
				return path
			}},
		"SCHED_SACK_SOCKET": {value: "/run/a/s", want: "/run/a/s", otherValue: "/run/b/s", got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any { return o.SackSocket }},
		"SCHED_SACK_JWKS":   {value: "/k/a", want: "/k/a", otherValue: "/k/b", got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any { return o.SackJWKS }},
		"SCHED_SACK_KEY":    {value: "/k/a", want: "/k/a", otherValue: "/k/b", got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any { return o.SackKey }},
		"SCHED_CONF_SERVER": {value: "one:7", want: "one:7", otherValue: "two", args: "--conf-server three", flagWant: "three:6817",
			got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any {
				defer func(paths []string) { defaultPaths(paths) }(defaultPaths(nil))
				from, err := o.findConfiguration()
				if err != nil {
					return err
				}
				return from.servers.String()
			}},
		"SCHEDRESTD_OUTPUT":       {value: "sockets", want: true, otherValue: "off", got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any { return o.Run.Switches.Output }},
		"SCHEDRESTD_CONF_CA":      {value: "/a", want: "/a", otherValue: "/b", got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any { return o.ConfCA }},
		"SCHEDRESTD_CONF_CACHE":   {value: "/a", want: "/a", otherValue: "/b", got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any { return o.cache(origin{}).Dir }},
		"SCHEDRESTD_CONF_TOKEN":   {value: "/a", want: "/a", otherValue: "/b", got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any { return o.ConfToken }},
		"SCHED_DEBUG_FLAGS":       {value: "Backfill", want: slog.LevelInfo, otherValue: "Data", args: "-v", flagWant: slog.Level(-2), configLine: "DebugFlags=Network", got: level},
		"SCHEDRESTD_DEBUG":        {value: "quiet", want: slog.Level(127), otherValue: "3", args: "-vv", flagWant: slog.LevelDebug, configLine: "DebugFlags=Network", got: level},
		"SCHED_DEBUG":             {value: "quiet", want: slog.Level(127), otherValue: "3", args: "-vv", flagWant: slog.LevelDebug, configLine: "DebugFlags=Network", got: level},
		"SCHEDRESTD_DEBUG_STDERR": {value: "quiet", want: slog.Level(127), otherValue: "3", args: "-vv", flagWant: slog.LevelDebug, configLine: "DebugFlags=Network", got: level},
		"SCHEDRESTD_DEBUG_SYSLOG": {value: "quiet", want: []string{"SCHEDRESTD_DEBUG_SYSLOG: SCHEDRESTD_LOG sends the log elsewhere"}, otherValue: "3", got: func(o options, _ *query.WholePlan, _ *conf.Cluster) any { return o.WithoutEffect }},
		"SCHED_JWT":               {value: "daemon", want: true, otherValue: "a.b.c", got: setup(func(s work.Setup) any { return s.JWT })},
		"SCHED_JSON":              {configLine: "SerializerParameters=compact", value: "pretty", want: work.Pretty, otherValue: "compact", got: setup(func(s work.Setup) any { return s.JSON })},
		"SCHEDRESTD_JSON":         {value: "pretty", want: work.Pretty, otherValue: "compact", got: setup(func(s work.Setup) any { return s.JSON })},
		"SCHED_YAML":              {configLine: "SerializerParameters=pretty", value: "compact", want: work.Compact, otherValue: "pretty", got: setup(func(s work.Setup) any { return s.YAML })},
		"SCHEDRESTD_YAML":         {value: "pretty", want: work.Pretty, otherValue: "no_tag", got: setup(func(s work.Setup) any { return s.YAML })},
		"SCHEDRESTD_AUTH_TYPES": {value: "rest_auth/jwt", want: "jwt", otherValue: "local", args: "-a local unix:/s", flagWant: "local",
			got: config(authOf)},
		"SCHEDRESTD_DATA_PARSER_PLUGINS": {value: "v0.0.41", want: []work.Parser{{Version: 41}}, otherValue: "latest", args: "-d data_parser/v0.0.40",
			flagWant: []work.Parser{{Version: 40}}, got: config(parsersOf)},
		"SCHEDRESTD_OPENAPI_PLUGINS": {value: "schedctld", want: work.ContentController, otherValue: "scheddb", args: "-s openapi/scheddb",
			flagWant: work.ContentAccounting, got: config(contentOf)},
		"SCHEDRESTD_LISTEN":                {value: ":7,unix:/s", want: []string{":7", "unix:/s"}, otherValue: ":8", args: ":9", flagWant: []string{":9"}, got: config(listenOf)},
		"SCHEDRESTD_MAX_CONNECTIONS":       {configLine: "SlurmrestdParameters=conmgr_max_connections=3", value: "7", want: 7, otherValue: "8", args: "--max-connections 9", flagWant: 9, got: config(func(c *query.WholePlan) any { return int(c.Connections) })},
		"SCHEDRESTD_RESPONSE_STATUS_CODES": {value: "200,404", want: []string{"200", "404"}, otherValue: "200", got: setup(func(s work.Setup) any { return s.Statuses })},
		"SCHEDRESTD_SECURITY":              {value: "worker_per_connection", want: true, otherValue: "disable_user_check", got: config(func(c *query.WholePlan) any { return c.Switches == (ipc.Switches{WorkerPerConnection: true}) })},
		"SCHEDRESTD_ACCOUNTING_TIMEOUT":    {value: "10m", want: 10 * time.Minute, otherValue: "1s", got: setup(func(s work.Setup) any { return s.Limits.Accounting })},
		"SCHEDRESTD_ANSWER_MEMORY":         {value: "64M", want: uint32(64 << 20), otherValue: "1", got: setup(func(s work.Setup) any { return s.Limits.Answers })},
		"SCHEDRESTD_MAX_AGE":               {value: "2s", want: 2 * time.Second, otherValue: "1m", got: setup(func(s work.Setup) any { return s.MaxAge })},
		"SCHEDRESTD_MAX_WAIT":              {value: "0s", want: time.Duration(0), otherValue: "1h", got: setup(func(s work.Setup) any { return s.MaxWait })},
		"SCHEDRESTD_WATCH_INTERVAL":        {value: "2s", want: 2 * time.Second, otherValue: "100ms", got: setup(func(s work.Setup) any { return s.WatchInterval })},
		"SCHEDRESTD_MIN_UID":               {value: "500", want: uint32(500), otherValue: "1001", got: setup(func(s work.Setup) any { return s.MinUID })},
		"SCHEDRESTD_METRICS":               {value: "127.0.0.1:7", want: "127.0.0.1:7", otherValue: "127.0.0.1:8", args: "--metrics 127.0.0.1:9", flagWant: "127.0.0.1:9", got: config(func(c *query.WholePlan) any { return c.Metrics[0].Text })},
		"SCHEDRESTD_NETNS":                 {value: "mgmt", want: "mgmt", otherValue: "/proc/7/ns/net", got: config(func(c *query.WholePlan) any { return c.Netns })},
		"SCHEDRESTD_CONTROLLER_NETNS":      {value: "mgmt", want: "mgmt", otherValue: "/proc/7/ns/net", got: config(func(c *query.WholePlan) any { return c.ControllerNetns })},
		"SCHEDRESTD_AUDIT_LOG":             {value: "/a", want: "/a", otherValue: "stderr", got: config(func(c *query.WholePlan) any { return c.Audit.Path })},
		"SCHEDRESTD_AUDIT_FAIL":            {value: "open", want: true, otherValue: "closed", got: config(func(c *query.WholePlan) any { return c.Audit.FailOpen })},
		"SCHEDRESTD_AUDIT_SYNC":            {value: "yes", want: true, otherValue: "no", got: config(func(c *query.WholePlan) any { return c.Audit.Sync })},
		"SCHEDRESTD_IDEMPOTENCY_SEARCH":    {value: "on", want: true, otherValue: "off", got: setup(func(s work.Setup) any { return s.SearchKeys })},
		"SCHEDRESTD_IDEMPOTENCY_FILE":      {value: "/a", want: "/a", otherValue: "/b", got: config(func(c *query.WholePlan) any { return c.Audit.Claims })},
		"SCHEDRESTD_CORS_ORIGINS":          {value: "https://a", want: []string{"https://a"}, otherValue: "https://b", got: setup(func(s work.Setup) any { return s.Origins })},
		"SCHEDRESTD_CLUSTERS":              {value: "a=https://a", want: []string{"a=https://a"}, otherValue: "b=https://b", got: setup(func(s work.Setup) any { return s.Clusters })},
		"SCHEDRESTD_SCOPES":                {value: "compute.read=:7", want: []string{"compute.read=[::]:7"}, otherValue: "compute.read=:8", got: setup(func(s work.Setup) any { return s.Scopes })},
		"SCHEDRESTD_HOSTS":                 {value: "a.example.org", want: "a.example.org", otherValue: "b.example.org", got: setup(func(s work.Setup) any { return s.Hosts[0] })},
		"SCHEDRESTD_DEPRECATED":            {value: "v0.0.40:2026-12-01", want: []work.Deprecation{{Version: 40, Since: 1796083200}}, otherValue: "v0.0.41:2026-12-01", got: setup(func(s work.Setup) any { return s.Deprecated })},
		"SCHEDRESTD_DOCS":                  {value: "off", want: false, otherValue: "on", got: setup(func(s work.Setup) any { return s.Docs })},
		"SCHEDRESTD_STATUS":                {value: "off", want: false, otherValue: "on", got: setup(func(s work.Setup) any { return s.Status })},
		"SCHEDRESTD_LOG":                   {value: "syslog", want: "syslog:/dev/log", otherValue: "json", got: setup(func(s work.Setup) any { return s.Log })},
		"SCHEDRESTD_EXEMPT":                {value: "10.0.0.0/8", want: []string{"10.0.0.0/8"}, otherValue: "::1", got: setup(func(s work.Setup) any { return prefixes(s.Admission.Exempt) })},
		"SCHEDRESTD_UNKNOWN_USERS":         {value: "controller", want: true, otherValue: "refuse", got: setup(func(s work.Setup) any { return s.PassUnknown })},
		"SCHEDRESTD_TOKEN_AUDIENCE":        {value: "https://id/1", want: "https://id/1", otherValue: "https://id/2", got: setup(func(s work.Setup) any { return s.Audience })},
		"SCHEDRESTD_TOKEN_ISSUER":          {value: "https://id/1", want: "https://id/1", otherValue: "https://id/2", got: setup(func(s work.Setup) any { return s.Issuer })},
		"SCHEDRESTD_TOKEN_MODE":            {value: "bound", want: true, otherValue: "bearer", configLine: "AuthType=auth/munge\nAuthAltParameters=jwt_key=/k", got: config(func(c *query.WholePlan) any { return c.Switches.Credentials && c.Setup.Credentials.Munge.Socket != "" })},
		"SCHEDRESTD_TOKEN_LIFETIME":        {value: "1h", want: time.Hour, otherValue: "2h", got: setup(func(s work.Setup) any { return s.TokenLifetime })},
		"SCHEDRESTD_TOKEN_REGISTER":        {value: "/a", want: "/a", otherValue: "/b", configLine: "AuthAltParameters=jwt_key=/k,disable_token_creation", got: setup(func(s work.Setup) any { return s.Register })},
		"SCHEDRESTD_TOKEN_SCOPE_CLAIM":     {value: "https://id/1", want: "https://id/1", otherValue: "https://id/2", got: setup(func(s work.Setup) any { return s.ScopeClaim })},
		"SCHEDRESTD_TLS_NAMES":             {value: "check", want: true, otherValue: "ignore", got: setup(func(s work.Setup) any { return s.TLS.CheckNames })},
		"SCHEDRESTD_TRUSTED_PROXIES":       {value: "192.0.2.7", want: []string{"192.0.2.7/32"}, otherValue: "unix:0", got: setup(func(s work.Setup) any { return prefixes(s.Admission.Proxies) })},
		"SCHEDRESTD_PENALTIES": {value: "crash:1m", want: []time.Duration{time.Second, time.Minute, 30 * time.Second}, otherValue: "off", got: setup(func(s work.Setup) any {
			return []time.Duration{s.Admission.Auth, s.Admission.Crash, s.Admission.Threshold}
		})},
		"TZ": {value: "EST5", want: -5 * 3600, otherValue: "UTC", got: setup(func(s work.Setup) any {
			loc, _ := zone.Load(s.Zone)
			_, offset := time.Unix(0, 0).In(loc).Zone()
			return offset
		})},
		"SCHEDRESTD_RATE":  {value: "50", want: [2]uint32{50, 100}, otherValue: "50:60", got: setup(func(s work.Setup) any { return [2]uint32{s.Admission.Rate, s.Admission.Burst} })},
		"SCHEDRESTD_NAMES": {value: "sched", want: work.NamesSched, otherValue: "slurm", configLine: "SlurmctldTimeout=30", got: setup(func(s work.Setup) any { return s.Names })},
	}
	for _, v := range option.Variables() {
		if v == "ABORT_ON_FATAL" { // schedrestd reads it; cmd/schedrestd.TestCommand/abort tests it
			continue
		}
		test, ok := tests[v]
		if !ok {
			t.Errorf("%s is not tested", v)
			continue
		}
		spellings := []string{v}
		if rest, ok := strings.CutPrefix(v, "SCHED"); ok {
			spellings = append(spellings, "SLURM"+rest)
		}
		outcome := func(t *testing.T, name string, args string) any {
			t.Helper()
			path := writeConfig(t, sample+test.configLine+"\n")
			if v != "SCHED_JWT" {
				t.Setenv("SCHED_JWT", "daemon")
			}
			t.Setenv(name, test.value)
			o := parseOptions(t, strings.Fields(args)...)
			if v == "SCHEDRESTD_OUTPUT" { // for root it needs become_user, which excludes tokens
				o.start.Root = false
			}
			if v == "SCHEDRESTD_TOKEN_MODE" { // needs these
				o.start.Root, o.Setup.Register = true, "/a"
			}
			if len(o.Listen) == 0 {
				o.Listen = []string{":1", "unix:/s"}
			}
			cluster, _, err := conf.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := o.plan(cluster, 0, listening, discard)
			if err != nil {
				t.Fatal(err)
			}
			return test.got(o, c, cluster)
		}
		for _, name := range spellings {
			t.Run(name, func(t *testing.T) {
				if diff := cmp.Diff(test.want, outcome(t, name, "")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if test.args == "" {
					return
				}
				if diff := cmp.Diff(test.flagWant, outcome(t, name, test.args)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", test.args, diff)
				}
			})
		}
		if len(spellings) == 1 {
			continue
		}
		t.Run(v+" in two spellings that differ", func(t *testing.T) {
			writeConfig(t, "")
			t.Setenv(spellings[0], test.value)
			t.Setenv(spellings[1], test.otherValue)
			var out, errOut bytes.Buffer
			status := runHere([]string{"-f", "/nowhere/x", "unix:/nowhere/s"}, &out, &errOut)
			if v == "SCHED_CONF" { // has no effect if -f is given
				status = runHere([]string{"unix:/nowhere/s"}, &out, &errOut)
			}
			if status != 1 || !strings.Contains(errOut.String(), spellings[0]+" and "+spellings[1]+" are both set and differ") {
				t.Errorf("exit status %d:\n%s", status, &errOut)
			}
			if strings.Contains(errOut.String(), test.value) && strings.Contains(errOut.String(), test.otherValue) {
				t.Errorf("the values are shown:\n%s", &errOut)
			}
		})
	}
}

func prefixes(list []netip.Prefix) (text []string) {
	for _, p := range list {
		text = append(text, p.String())
	}
	return text
}
