package endpoint

import (
	"path/filepath"
	"strings"

	"schedrestd/internal/errs"
)

// CheckNamespace returns an error unless text is a possible name of a network
// namespace, or an absolute path. The message of the error begins with subject.
func CheckNamespace(subject, text string) error {
	if strings.ContainsRune(text, 0) || text == "." || text == ".." || !filepath.IsAbs(text) && strings.Contains(text, "/") {
		return errs.New(errs.Invalid, "%s is neither the name of a network namespace nor an absolute path", subject).
			WithHint("use a name that ip netns list shows, or a path such as /run/netns/NAME or /proc/PID/ns/net")
	}
	return nil
}
