package plan

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// inLogs returns the path of a file in the directory that the unit may write to.
// systemd passes the path of this directory (LogsDirectory=).
func inLogs(name string) string {
	dir, _, _ := strings.Cut(os.Getenv("LOGS_DIRECTORY"), ":")
	return filepath.Join(cmp.Or(dir, "/var/log/schedrestd"), name)
}

// setAudit sets the destination of the audit log. It does not check whether the
// file can be used: the parent does, when it opens the file.
func setAudit(o *options, v string) error {
	if v != ipc.AuditStderr && !filepath.IsAbs(v) {
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_AUDIT_LOG=%s is neither an absolute path nor stderr", v).
			WithHint("use SCHEDRESTD_AUDIT_LOG=%s, or stderr", inLogs("audit.log"))
	}
	o.audit.Path = v
	return nil
}

// setClaims sets the file for Idempotency-Keys.
func setClaims(o *options, v string) error {
	if !filepath.IsAbs(v) {
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_IDEMPOTENCY_FILE=%s is not an absolute path", v).
			WithHint("use SCHEDRESTD_IDEMPOTENCY_FILE=%s", inLogs("idempotency"))
	}
	o.audit.Claims = v
	return nil
}

// setAuditBool returns a function that sets one of the audit log's options.
func setAuditBool(field func(*options) *bool, name, yes, no string) func(*options, string) error {
	set := setBool(field, name, yes, no)
	return func(o *options, v string) error {
		o.auditSetting = name + "=" + v
		return set(o, v)
	}
}

// checkAudit refuses options for the audit log if no audit log is configured.
// An administrator who sets such an option expects the log to be written. It
// also refuses one file for the audit log and for Idempotency-Keys, because
// they would overwrite each other.
func (o *options) checkAudit() error {
	switch {
	case o.audit.Path == "" && o.auditSetting != "":
		return errs.New(errs.Invalid, "environment: %s without SCHEDRESTD_AUDIT_LOG: nothing would be recorded", o.auditSetting).
			WithHint("set SCHEDRESTD_AUDIT_LOG=%s or stderr, or unset both", inLogs("audit.log"))
	case o.audit.Path == ipc.AuditStderr && o.audit.Sync:
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_AUDIT_SYNC=yes with SCHEDRESTD_AUDIT_LOG=stderr: stderr cannot be synced").
			WithHint("use SCHEDRESTD_AUDIT_SYNC=no, or the path of a file")
	case o.audit.Claims != "" && filepath.Clean(o.audit.Claims) == filepath.Clean(o.audit.Path):
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_IDEMPOTENCY_FILE=%s: this is the path of the audit log", o.audit.Claims).
			WithHint("use SCHEDRESTD_IDEMPOTENCY_FILE=%s", inLogs("idempotency"))
	}
	return nil
}

// setBool returns a function that parses the value of a variable. The function
// sets an option to true if the value equals the argument yes, and to false if
// it equals the argument no.
func setBool(field func(*options) *bool, name, yes, no string) func(*options, string) error {
	return func(o *options, v string) error {
		if v != yes && v != no {
			return errs.New(errs.Invalid, "environment: %s=%s", name, v).WithHint("allowed values: %s, %s", yes, no)
		}
		*field(o) = v == yes
		return nil
	}
}
