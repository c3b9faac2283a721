package apipage

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
)

// sums contains the SHA-256 checksums of swagger-ui-dist's files, as published
// by npm.
var sums = map[string]string{
	"docs/swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
	"docs/swagger-ui.css":       "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
}

// TestOrigin checks that the compressed files have the contents that npm
// publishes.
func TestOrigin(t *testing.T) {
	for path, file := range Files() {
		if !file.Gzipped {
			if sums[path] != "" {
				t.Errorf("%s is not compressed", path)
			}
			continue
		}
		text := file.Plain()
		sum := sha256.Sum256([]byte(text))
		if got := hex.EncodeToString(sum[:]); got != sums[path] || len(text) != file.Size() {
			t.Errorf("%s: SHA-256 %s, %d bytes, want %s, %d", path, got, len(text), sums[path], file.Size())
		}
	}
}

// TestNothingInline checks that the page refers to no other server, and has no
// inline script, style or event handler. The policy would block these.
func TestNothingInline(t *testing.T) {
	for path, file := range Files() {
		if file.Gzipped {
			continue
		}
		if m := regexp.MustCompile(`(?i)https?://|<style|style=|\son[a-z]+=|javascript:|\beval\(|innerHTML|localStorage|sessionStorage|document\.cookie|@import`).FindString(file.Body); m != "" {
			t.Errorf("%s contains %q", path, m)
		}
	}
	for _, part := range strings.SplitAfter(index, "<script")[1:] {
		if tag, after, _ := strings.Cut(part, ">"); !strings.Contains(tag, "src=") || !strings.HasPrefix(after, "</script>") {
			t.Errorf("a script is in the page: <script%s", part)
		}
	}
	for _, word := range []string{"unsafe", "*", "http"} {
		if strings.Contains(Policy, word) {
			t.Errorf("the policy contains %q: %s", word, Policy)
		}
	}
}

// TestVersion checks that deploy/THIRD-PARTY.txt lists this version.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../../deploy/THIRD-PARTY.txt")
	if err != nil || !strings.Contains(string(text), "\n  swagger-ui-dist "+Version+"\n") {
		t.Errorf("THIRD-PARTY.txt does not list swagger-ui-dist %s (%v)", Version, err)
	}
}
