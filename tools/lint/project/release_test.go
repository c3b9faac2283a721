package project

import (
	"os"
	"regexp"
	"testing"

	"schedrestd/internal/release"
)

// TestRelease checks that the files that name the release agree with package
// release. The changelog may have a section "Unreleased" above it, but not when
// a release is made (make release sets RELEASING).
func TestRelease(t *testing.T) {
	t.Chdir(root)
	version := regexp.QuoteMeta(release.Version)
	unreleased := `(## Unreleased\n(?s:.*?)\n)?`
	if os.Getenv("RELEASING") != "" {
		unreleased = ""
	}
	for file, pattern := range map[string]string{
		"CHANGELOG.md":                              `^# Changelog\n\n` + unreleased + `## ` + version + ` \(\d{4}-\d\d-\d\d\)\n`,
		"README.md":                                 `The project is young: ` + version + ` is its \w+ release`,
		"deploy/kubernetes/schedrestd.yaml":         `image: \S+/schedrestd:` + version + `\n`,
		"cmd/schedrestd/testdata/script/help.txtar": `\nschedrestd ` + version + `\n`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(pattern).Match(text) {
			t.Errorf("%s does not agree with internal/release about release %s", file, release.Version)
		}
	}
}
