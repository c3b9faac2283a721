package auth

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestModelScopes checks that schedctl mcp offers a language model only tools for
// which the token and the address have the scopes.
func TestModelScopes(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t, func(l *harness.Lab) { l.AuthParameters = "jwt_key=" + l.Key() + ",disable_token_creation" })
	path := register(t, l)
	all, reads := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	l.StartGateway(t, append(security(), "SCHEDRESTD_TOKEN_REGISTER="+path), all, "compute.read="+reads)
	reader, _ := newGatewayToken(t, l, path, "compute.read")
	canceller, _ := newGatewayToken(t, l, path, "compute.read+compute.cancel")
	for _, tt := range []struct {
		name, url, token string
		submit, cancel   bool
	}{
		{"a user's token", all, l.OwnToken, true, true},
		{"a token that reads", all, reader, false, false},
		{"a token that cancels", all, canceller, false, true},
		{"an address that reads", reads, canceller, false, false},
		{"a version", all + "/sched/v0.0.43", reader, false, false},
	} {
		cmd := exec.Command(filepath.Join(harness.Bin, "schedctl"), "mcp", "--allow-changes", "-v", "--url", "http://"+tt.url)
		cmd.Env = []string{"SCHED_JWT=" + tt.token}
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cancel_job","arguments":{"job_id":"4000000"}}}` + "\n")
		out, err := cmd.CombinedOutput()
		text := string(out)
		if err != nil || !strings.Contains(text, `"list_jobs"`) || strings.Contains(text, `"submit_job"`) != tt.submit || strings.Contains(text, `"cancel_job"`) != tt.cancel {
			t.Errorf("%s: %v, %s", tt.name, err, text)
		}
		if strings.Contains(text, "there is no job 4000000") != tt.cancel || strings.Contains(text, "unknown tool") == tt.cancel || strings.Contains(text, tt.token) {
			t.Errorf("%s: %s", tt.name, text)
		}
	}
}
