package plan

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"schedrestd/conf"
	"schedrestd/gateway/endpoint"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A variable is an environment variable, with its name in our spelling. It sets
// options that the command line has not set.
type variable struct {
	name string
	set  func(o *options, value string) error
}

// variables lists every variable that has an effect. If two variables set the
// same option, the one later in this list has precedence.
var variables = []variable{
	{"ABORT_ON_FATAL", ignore}, // schedrestd reads it
	{"SCHED_CONF", ignore},     // conf.Reader.Find reads it
	{"SCHED_CONF_SERVER", setConfServer},
	{"SCHEDRESTD_CONF_CA", setPath(func(o *options) *string { return &o.confCA }, "SCHEDRESTD_CONF_CA")},
	{"SCHEDRESTD_CONF_CACHE", setPath(func(o *options) *string { return &o.confCache }, "SCHEDRESTD_CONF_CACHE")},
	{"SCHEDRESTD_CONF_TOKEN", setPath(func(o *options) *string { return &o.confTokenFile }, "SCHEDRESTD_CONF_TOKEN")},
	{"SCHED_DEBUG_FLAGS", func(o *options, v string) error { o.debugFlags = splitList(v); return nil }},
	{"SCHED_JWT", func(o *options, v string) error { o.jwt = v; return nil }},
	{"SCHED_SACK_SOCKET", setPath(func(o *options) *string { return &o.sackSocket }, "SCHED_SACK_SOCKET")},
	{"SCHED_JSON", setLayout(func(o *options) **work.Layout { return &o.json }, "SCHED_JSON", "compact", "pretty")},
	{"SCHEDRESTD_JSON", setLayout(func(o *options) **work.Layout { return &o.json }, "SCHEDRESTD_JSON", "compact", "pretty")},
	{"SCHED_YAML", setLayout(func(o *options) **work.Layout { return &o.yaml }, "SCHED_YAML", "compact", "pretty", "no_tag")},
	{"SCHEDRESTD_YAML", setLayout(func(o *options) **work.Layout { return &o.yaml }, "SCHEDRESTD_YAML", "compact", "pretty", "no_tag")},
	{"SCHEDRESTD_ACCOUNTING_TIMEOUT", setTime(func(o *options) *time.Duration { return &o.accountingTimeout }, "SCHEDRESTD_ACCOUNTING_TIMEOUT", time.Second, 15*time.Minute, "900s")}, // 3.5 times as much must be less than dispatcher.Limits.RetireLimit
	{"SCHEDRESTD_ANSWER_MEMORY", setAnswerMemory},
	{"SCHEDRESTD_AUDIT_FAIL", setAuditBool(func(o *options) *bool { return &o.audit.FailOpen }, "SCHEDRESTD_AUDIT_FAIL", "open", "closed")},
	{"SCHEDRESTD_AUDIT_LOG", setAudit},
	{"SCHEDRESTD_AUDIT_SYNC", setAuditBool(func(o *options) *bool { return &o.audit.Sync }, "SCHEDRESTD_AUDIT_SYNC", "yes", "no")},
	{"SCHEDRESTD_AUTH_TYPES", setNameList(func(o *options) *nameList { return &o.auth }, "SCHEDRESTD_AUTH_TYPES")},
	{"SCHEDRESTD_DATA_PARSER_PLUGINS", setNameList(func(o *options) *nameList { return &o.parsers }, "SCHEDRESTD_DATA_PARSER_PLUGINS")},
	{"SCHEDRESTD_OPENAPI_PLUGINS", setNameList(func(o *options) *nameList { return &o.content }, "SCHEDRESTD_OPENAPI_PLUGINS")},
	{"SCHEDRESTD_CONTROLLER_NETNS", setNetns(func(o *options) *string { return &o.controllerNetns }, "SCHEDRESTD_CONTROLLER_NETNS")},
	{"SCHEDRESTD_CORS_ORIGINS", setOrigins},
	{"SCHED_DEBUG", setDebug("SCHED_DEBUG", nil)},
	{"SCHEDRESTD_DEBUG", setDebug("SCHEDRESTD_DEBUG", nil)},
	{"SCHEDRESTD_DEPRECATED", setDeprecated},
	{"SCHEDRESTD_DOCS", setPage(func(o *options) *bool { return &o.noDocs }, "SCHEDRESTD_DOCS")},
	{"SCHEDRESTD_EXEMPT", setExempt},
	{"SCHEDRESTD_HOSTS", setHosts},
	{"SCHEDRESTD_IDEMPOTENCY_FILE", setClaims},
	{"SCHEDRESTD_LISTEN", setListen},
	{"SCHEDRESTD_LOG", setLog},
	{"SCHEDRESTD_DEBUG_STDERR", setDebug("SCHEDRESTD_DEBUG_STDERR", logsToStderr)},
	{"SCHEDRESTD_DEBUG_SYSLOG", setDebug("SCHEDRESTD_DEBUG_SYSLOG", func(o *options) bool { return !logsToStderr(o) })},
	{"SCHEDRESTD_MAX_AGE", setTime(func(o *options) *time.Duration { return &o.maxAge }, "SCHEDRESTD_MAX_AGE", 0, time.Minute, "2s")},
	{"SCHEDRESTD_MAX_CONNECTIONS", setConnections},
	{"SCHEDRESTD_MAX_WAIT", setTime(func(o *options) *time.Duration { return &o.maxWait }, "SCHEDRESTD_MAX_WAIT", 0, time.Hour, "60s")},
	{"SCHEDRESTD_METRICS", setMetrics},
	{"SCHEDRESTD_NETNS", setNetns(func(o *options) *string { return &o.netns }, "SCHEDRESTD_NETNS")},
	{"SCHEDRESTD_PENALTIES", setPenalties},
	{"SCHEDRESTD_RATE", setRate},
	{"SCHEDRESTD_RESPONSE_STATUS_CODES", setStatuses},
	{"SCHEDRESTD_SECURITY", setSwitches},
	{"SCHEDRESTD_STATUS", setPage(func(o *options) *bool { return &o.noStatus }, "SCHEDRESTD_STATUS")},
	{"SCHEDRESTD_TLS_NAMES", setTLSNames},
	{"SCHEDRESTD_TRUSTED_PROXIES", setProxies},
	{"SCHEDRESTD_UNKNOWN_USERS", setUnknownUsers},
	{"SCHEDRESTD_WATCH_INTERVAL", setTime(func(o *options) *time.Duration { return &o.watchInterval }, "SCHEDRESTD_WATCH_INTERVAL", 100*time.Millisecond, time.Minute, "1s")},
	{"TZ", ignore}, // zone.Environment reads it
	{"SCHEDRESTD_NAMES", func(o *options, v string) error { o.names = v; return nil }},
}

// ignore does nothing. It is for variables that other code reads.
func ignore(*options, string) error { return nil }

// applyEnvironment sets options from the environment, unless the command line
// has set them.
func (o *options) applyEnvironment() error {
	for _, v := range variables {
		value, err := conf.Env(v.name)
		if err == nil && value != "" {
			err = v.set(o, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// variableName matches the name of a variable that may have Slurm's spelling.
var variableName = regexp.MustCompile(`\bSCHED(RESTD)?_[A-Z_]*[A-Z]\b`)

// asSet replaces, in a text for the administrator, the name of each variable
// that is set only in Slurm's spelling. The administrator's files do not contain
// the other name.
func asSet(text string) string {
	return variableName.ReplaceAllStringFunc(text, func(name string) string {
		if slurmName := "SLURM" + name[len("SCHED"):]; os.Getenv(name) == "" && os.Getenv(slurmName) != "" {
			return slurmName
		}
		return name
	})
}

// spelledAsSet returns err with the names of variables as they are set.
func spelledAsSet(err error) error {
	text, hint := err.Error(), errs.HintOf(err)
	if asSet(text) == text && asSet(hint) == hint {
		return err
	}
	return errs.New(errs.KindOf(err), "%s", asSet(text)).WithHint("%s", asSet(hint))
}

func setSwitches(o *options, v string) (err error) {
	if o.switches, err = parseSwitches(v); err != nil {
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_SECURITY=%s: %v", v, err).WithHint("%s", errs.HintOf(err))
	}
	return nil
}

// setPage returns a function that sets whether a page for browsers is disabled.
func setPage(disabled func(*options) *bool, name string) func(*options, string) error {
	return func(o *options, v string) error {
		switch v {
		case "on", "off":
			*disabled(o) = v == "off"
			return nil
		}
		return errs.New(errs.Invalid, "environment: %s=%s", name, v).WithHint("allowed values: on, off")
	}
}

// setUnknownUsers sets what happens to a user of a token that this machine does
// not know.
func setUnknownUsers(o *options, v string) error {
	switch v {
	case "refuse", "controller":
		o.passUnknown = v == "controller"
		return nil
	}
	return errs.New(errs.Invalid, "environment: SCHEDRESTD_UNKNOWN_USERS=%s", v).WithHint("allowed values: refuse, controller")
}

// setTLSNames sets whether the certificates of the daemons must contain their
// names.
func setTLSNames(o *options, v string) (err error) {
	o.tlsNames, err = conf.CheckNames(v)
	return err
}

// logSockets maps each log format to the socket to which the log is sent, or to
// "" if the format uses no socket.
var logSockets = map[string]string{"text": "", "json": "", "journald": "/run/systemd/journal/socket", "syslog": "/dev/log"}

// maxSocketPath is the kernel's limit on the length of a UNIX socket's path.
const maxSocketPath = 107

// setLog sets the format of the log and its destination. The format may be
// followed by a colon and the path of a socket, which replaces the default
// socket.
func setLog(o *options, v string) error {
	word, path, hasPath := strings.Cut(v, ":")
	defaultPath, ok := logSockets[word]
	switch {
	case !ok || hasPath && defaultPath == "":
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_LOG=%s", v).
			WithHint("allowed values: text, json, journald, syslog, journald:SOCKET, syslog:SOCKET")
	case hasPath && (!filepath.IsAbs(path) || len(path) > maxSocketPath):
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_LOG=%s does not name a socket", v).
			WithHint("write an absolute path of at most %d bytes after the colon", maxSocketPath)
	}
	o.log = word
	if !hasPath {
		path = defaultPath
	}
	if path != "" {
		o.log = word + ":" + path
	}
	return nil
}

func setNetns(field func(*options) *string, name string) func(*options, string) error {
	return func(o *options, v string) error {
		*field(o) = v
		if err := endpoint.CheckNamespace("environment: "+name+"="+v, v); err != nil {
			return err
		}
		return nil
	}
}

func setNameList(field func(*options) *nameList, name string) func(*options, string) error {
	return func(o *options, v string) error {
		if a := field(o); a.origin == "" {
			a.origin, a.value = "environment: "+name, v
		}
		return nil
	}
}

// layouts maps the words of Slurm to layouts.
var layouts = map[string]work.Layout{"compact": work.Compact, "pretty": work.Pretty, "no_tag": work.NoTag}

// setLayout returns a function that sets the layout of response bodies from the
// value of the variable called name. As in Slurm, the value may consist of
// several words. The words compact and pretty exclude each other, and no_tag
// implies pretty. Words of Slurm that are not in allowed have no effect.
func setLayout(field func(*options) **work.Layout, name string, allowed ...string) func(*options, string) error {
	return func(o *options, v string) error {
		words := splitList(v)
		bad := len(words) == 0 || slices.Contains(words, "compact") && slices.Contains(words, "pretty")
		layout, isSet := work.Compact, false
		for _, word := range words {
			switch {
			case slices.Contains(allowed, word):
				layout, isSet = max(layout, layouts[word]), true
			case word == "complex", word == "no_tag":
				o.withoutEffect = append(o.withoutEffect, name+": "+word)
			default:
				bad = true
			}
		}
		if bad {
			return errs.New(errs.Invalid, "environment: %s=%s", name, v).
				WithHint("allowed values: %s", strings.Join(allowed, ", "))
		}
		if isSet {
			*field(o) = &layout
		}
		return nil
	}
}

// setDebug returns a function that sets the log level from the value of the
// variable called name, unless -v sets it. If concerns is not nil, it reports
// whether the variable is for the destination of the log.
func setDebug(name string, concerns func(*options) bool) func(*options, string) error {
	return func(o *options, v string) (err error) {
		switch {
		case concerns != nil && !concerns(o):
			o.withoutEffect = append(o.withoutEffect, name+": SCHEDRESTD_LOG sends the log elsewhere")
		case o.verbose == 0:
			o.debug, err = parseLevel(name, v)
		}
		return err
	}
}

// logsToStderr reports whether the log is written to standard error, and not
// sent to syslog or journald.
func logsToStderr(o *options) bool { return !strings.Contains(o.log, ":") }

func setListen(o *options, v string) error {
	if len(o.listen) > 0 {
		return nil
	}
	if o.listen = splitList(v); len(o.listen) == 0 {
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_LISTEN=%s names no address", v)
	}
	return nil
}

func setConnections(o *options, v string) error {
	if o.connections != 0 {
		return nil
	}
	if err := (number{&o.connections, 1, ipc.MaxConnections}).Set(v); err != nil {
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_MAX_CONNECTIONS=%s is %v", v, err)
	}
	return nil
}

// setAnswerMemory sets how much memory a worker may use for daemons' answers.
func setAnswerMemory(o *options, v string) error {
	if err := o.answerMemory.Set(v); err != nil {
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_ANSWER_MEMORY=%s is %v", v, err)
	}
	return nil
}

// setTime returns a function that sets a time.
func setTime(at func(*options) *time.Duration, name string, least, most time.Duration, example string) func(*options, string) error {
	return func(o *options, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least || d > most {
			return errs.New(errs.Invalid, "environment: %s=%s is not a time of %v to %v, such as %s", name, v, least, most, example)
		}
		*at(o) = d
		return nil
	}
}

// setStatuses sets the responses that the OpenAPI document lists for each
// operation.
func setStatuses(o *options, v string) (err error) {
	o.statuses, err = feature.ParseStatuses("environment: SCHEDRESTD_RESPONSE_STATUS_CODES", v)
	return err
}

// splitList splits a value at commas. It drops empty words, and the spaces
// around words.
func splitList(v string) []string {
	words := []string{}
	for w := range strings.SplitSeq(v, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}
