package spawn

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/security"
)

// CheckCapabilities rejects a root that lacks the capabilities to start and end
// processes of other users, before anything else fails because of that.
func CheckCapabilities() error {
	held, err := security.Held()
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	var missing []string
	for name, number := range map[string]int{"CAP_SETUID": unix.CAP_SETUID, "CAP_SETGID": unix.CAP_SETGID, "CAP_KILL": unix.CAP_KILL} {
		if held&security.Caps(number) == 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return errs.New(errs.Denied, "root lacks capabilities to start and stop workers: %s", strings.Join(missing, ", ")).
		WithHint("add them (CapabilityBoundingSet= of a unit, --cap-add of a container), or start as the serving user without -u")
}
