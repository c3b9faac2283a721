package option

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// A variable is an environment variable, with its name in our spelling. It sets
// options that the command line has not set.
type variable struct {
	name string
	set  func(name, value string) error
}

// variables lists every variable that has an effect, and where its value goes. If
// two variables set the same option, the one later in this list has precedence.
func (o *Options) variables() []variable {
	run, s := &o.Run, &o.Setup
	return []variable{
		{"ABORT_ON_FATAL", ignore}, // schedrestd reads it
		{"SCHED_CONF", ignore},     // conf.Reader.Find reads it
		{"SCHED_CONF_SERVER", o.setConfServer},
		{"SCHEDRESTD_CONF_CA", path(&o.ConfCA)},
		{"SCHEDRESTD_CONF_CACHE", path(&o.ConfCache)},
		{"SCHEDRESTD_CONF_TOKEN", path(&o.ConfToken)},
		{"SCHED_DEBUG_FLAGS", list(&o.debugFlags)},
		{"SCHED_JWT", text(&o.JWT)},
		{"SCHED_SACK_SOCKET", path(&o.SackSocket)},
		{"SCHED_JSON", o.layout(&o.JSON, "compact", "pretty")},
		{"SCHEDRESTD_JSON", o.layout(&o.JSON, "compact", "pretty")},
		{"SCHED_YAML", o.layout(&o.YAML, "compact", "pretty", "no_tag")},
		{"SCHEDRESTD_YAML", o.layout(&o.YAML, "compact", "pretty", "no_tag")},
		{"SCHEDRESTD_ACCOUNTING_TIMEOUT", duration(&s.Limits.Accounting, time.Second, 15*time.Minute, "900s")}, // 3.5 times as much must be less than dispatcher.Limits.RetireLimit
		{"SCHEDRESTD_ANSWER_MEMORY", flagValue((*size)(&s.Limits.Answers))},
		{"SCHEDRESTD_AUDIT_FAIL", o.auditWord(word(&run.Audit.FailOpen, "open", "open", "closed"))},
		{"SCHEDRESTD_AUDIT_LOG", o.setAudit},
		{"SCHEDRESTD_AUDIT_SYNC", o.auditWord(word(&run.Audit.Sync, "yes", "yes", "no"))},
		{"SCHEDRESTD_AUTH_TYPES", names(&o.Auth)},
		{"SCHEDRESTD_DATA_PARSER_PLUGINS", names(&o.Parsers)},
		{"SCHEDRESTD_OPENAPI_PLUGINS", names(&o.Content)},
		{"SCHEDRESTD_CONTROLLER_NETNS", netns(&run.ControllerNetns)},
		{"SCHEDRESTD_CORS_ORIGINS", o.setOrigins},
		{"SCHED_DEBUG", o.setDebug},
		{"SCHEDRESTD_DEBUG", o.setDebug},
		{"SCHEDRESTD_DEPRECATED", o.setDeprecated},
		{"SCHEDRESTD_DOCS", word(&s.Docs, "on", "on", "off")},
		{"SCHEDRESTD_EXEMPT", o.setExempt},
		{"SCHEDRESTD_HOSTS", o.setHosts},
		{"SCHEDRESTD_IDEMPOTENCY_FILE", o.setClaims},
		{"SCHEDRESTD_LISTEN", o.setListen},
		{"SCHEDRESTD_LOG", o.setLog},
		{"SCHEDRESTD_DEBUG_STDERR", o.setDebugFor(stderr)},
		{"SCHEDRESTD_DEBUG_SYSLOG", o.setDebugFor(socket)},
		{"SCHEDRESTD_MAX_AGE", duration(&s.MaxAge, 0, time.Minute, "2s")},
		{"SCHEDRESTD_MAX_CONNECTIONS", unset(&run.Connections, flagValue(number{&run.Connections, 1, ipc.MaxConnections}))},
		{"SCHEDRESTD_MAX_WAIT", duration(&s.MaxWait, 0, time.Hour, "60s")},
		{"SCHEDRESTD_METRICS", unset(&o.Metrics, text(&o.Metrics))},
		{"SCHEDRESTD_NETNS", netns(&run.Netns)},
		{"SCHEDRESTD_PENALTIES", o.setPenalties},
		{"SCHEDRESTD_RATE", o.setRate},
		{"SCHEDRESTD_RESPONSE_STATUS_CODES", o.setStatuses},
		{"SCHEDRESTD_SECURITY", o.setSwitches},
		{"SCHEDRESTD_STATUS", word(&s.Status, "on", "on", "off")},
		{"SCHEDRESTD_TLS_NAMES", word(&s.TLS.CheckNames, "check", "check", "ignore")},
		{"SCHEDRESTD_TRUSTED_PROXIES", o.setProxies},
		{"SCHEDRESTD_UNKNOWN_USERS", word(&s.PassUnknown, "controller", "refuse", "controller")},
		{"SCHEDRESTD_WATCH_INTERVAL", duration(&s.WatchInterval, 100*time.Millisecond, time.Minute, "1s")},
		{"TZ", ignore}, // zone.Environment reads it
		{"SCHEDRESTD_NAMES", text(&o.Names)},
	}
}

// Variables returns the names of all variables that have an effect.
func Variables() (list []string) {
	for _, v := range new(Options).variables() {
		list = append(list, v.name)
	}
	return list
}

// SetVariables returns the names of the variables in environ that have an effect
// on the gateway.
func SetVariables(environ []string) (list []string) {
	known := Variables()
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && slices.Contains(known, strings.Replace(name, "SLURM", "SCHED", 1)) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// ReadEnvironment sets options from the environment, unless the command line has
// set them.
func (o *Options) ReadEnvironment() error {
	for _, v := range o.variables() {
		value, err := conf.Env(v.name)
		if err == nil && value != "" {
			err = v.set(v.name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// invalid returns the error about a variable with an invalid value. The format
// continues the sentence that begins with the variable.
func invalid(name, value, format string, args ...any) *errs.Error {
	return errs.New(errs.Invalid, "environment: %s=%s%s", name, value, fmt.Sprintf(format, args...))
}

// variableName matches the name of a variable that may have Slurm's spelling.
var variableName = regexp.MustCompile(`\bSCHED(RESTD)?_[A-Z_]*[A-Z]\b`)

// AsSet replaces, in a text for the administrator, the name of each variable
// that is set only in Slurm's spelling. The administrator's files do not contain
// the other name.
func AsSet(text string) string {
	return variableName.ReplaceAllStringFunc(text, func(name string) string {
		if slurmName := "SLURM" + name[len("SCHED"):]; os.Getenv(name) == "" && os.Getenv(slurmName) != "" {
			return slurmName
		}
		return name
	})
}

// SpelledAsSet returns err with the names of variables as they are set.
func SpelledAsSet(err error) error {
	text, hint := err.Error(), errs.HintOf(err)
	if AsSet(text) == text && AsSet(hint) == hint {
		return err
	}
	return errs.New(errs.KindOf(err), "%s", AsSet(text)).WithHint("%s", AsSet(hint))
}
