package option

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
func (o *Options) setAudit(name, v string) error {
	if v != ipc.AuditStderr && !filepath.IsAbs(v) {
		return invalid(name, v, " is neither an absolute path nor stderr").
			WithHint("use SCHEDRESTD_AUDIT_LOG=%s, or stderr", inLogs("audit.log"))
	}
	o.Run.Audit.Path = v
	return nil
}

// setClaims sets the file for Idempotency-Keys.
func (o *Options) setClaims(name, v string) error {
	if !filepath.IsAbs(v) {
		return invalid(name, v, " is not an absolute path").
			WithHint("use SCHEDRESTD_IDEMPOTENCY_FILE=%s", inLogs("idempotency"))
	}
	o.Run.Audit.Claims = v
	return nil
}

// auditWord returns a function that sets one of the audit log's options with set.
func (o *Options) auditWord(set func(name, v string) error) func(name, v string) error {
	return func(name, v string) error {
		o.auditSetting = name + "=" + v
		return set(name, v)
	}
}

// CheckAudit refuses options for the audit log if no audit log is configured.
// An administrator who sets such an option expects the log to be written. It
// also refuses one file for the audit log and for Idempotency-Keys, because
// they would overwrite each other.
func (o *Options) CheckAudit() error {
	switch {
	case o.Run.Audit.Path == "" && o.auditSetting != "":
		return errs.New(errs.Invalid, "environment: %s without SCHEDRESTD_AUDIT_LOG: nothing would be recorded", o.auditSetting).
			WithHint("set SCHEDRESTD_AUDIT_LOG=%s or stderr, or unset both", inLogs("audit.log"))
	case o.Run.Audit.Path == ipc.AuditStderr && o.Run.Audit.Sync:
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_AUDIT_SYNC=yes with SCHEDRESTD_AUDIT_LOG=stderr: stderr cannot be synced").
			WithHint("use SCHEDRESTD_AUDIT_SYNC=no, or the path of a file")
	case o.Setup.SearchKeys && o.Run.Audit.Claims == "":
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_IDEMPOTENCY_SEARCH=on without SCHEDRESTD_IDEMPOTENCY_FILE: no Idempotency-Key would be accepted").
			WithHint("use SCHEDRESTD_IDEMPOTENCY_FILE=%s", inLogs("idempotency"))
	case o.Run.Audit.Claims != "" && filepath.Clean(o.Run.Audit.Claims) == filepath.Clean(o.Run.Audit.Path):
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_IDEMPOTENCY_FILE=%s: this is the path of the audit log", o.Run.Audit.Claims).
			WithHint("use SCHEDRESTD_IDEMPOTENCY_FILE=%s", inLogs("idempotency"))
	}
	return nil
}
