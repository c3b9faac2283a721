package auth

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestPortalToken checks for whom the token of a portal acts, that requests and jobs
// are those of the user, that it never acts for others, and that its revocation ends
// the streams of users.
func TestPortalToken(t *testing.T) {
	t.Parallel()
	alice, bob := harness.TwoUsers(t)
	group, err := user.LookupGroupId(fmt.Sprint(alice.GID))
	harness.Must(t, err)
	l := harness.NewDaemons(t, func(l *harness.Lab) { l.AuthParameters = "jwt_key=" + l.Key() })
	path := register(t, l)
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)) }
	first, strict, later := address(), address(), address()
	auditLog := filepath.Join(l.Dir, "audit.log")
	env := []string{"SCHEDRESTD_TOKEN_REGISTER=" + path, "SCHEDRESTD_DEBUG=debug"}
	low := append(slices.Clone(env), "SCHEDRESTD_MIN_UID=1")
	gateway := l.StartGateway(t, append(slices.Clone(low), "SCHEDRESTD_AUDIT_LOG="+auditLog, "SCHEDRESTD_OUTPUT=tokens"), first)
	l.URL = "http://" + first
	l.StartGateway(t, append(slices.Clone(env), "SCHEDRESTD_SECURITY=require_user_name"), strict)
	send := func(address, token, name, method, path, body string) harness.Answer {
		t.Helper()
		c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", address) })
		headers := []string{"X-SCHED-USER-TOKEN: " + token}
		if name != "" {
			headers = append(headers, "X-SCHED-USER-NAME: "+name)
		}
		a, err := l.TryRequest(c, method, path, body, headers...)
		harness.Must(t, err)
		return a
	}
	const ping, jobs, submit, accounting = "/sched/v0.0.43/ping", "/sched/v0.0.43/jobs/", "/sched/v0.0.43/job/submit", "/scheddb/v0.0.43/users/"
	create := func() (token, id string) {
		return newGatewayToken(t, l, path, "compute.read+compute.create+slurmdb.read", "--user", bob.Name, "--act-for", group.Name)
	}
	token, id := create()
	plain, _ := newGatewayToken(t, l, path, "compute.read")
	for _, tt := range []struct {
		name, address, token, user, method, path, body string
		status                                         int
	}{
		{"a member", first, token, alice.Name, "GET", jobs, "", 200},
		{"a member's accounting", first, token, alice.Name, "GET", accounting, "", 200},
		{"a change of accounting", first, token, alice.Name, "POST", accounting, `{"users":[{"name":"x"}]}`, 403},
		{"administration", first, token, alice.Name, "GET", "/sched/v0.0.43/reconfigure/", "", 403},
		{"not a member", first, token, bob.Name, "GET", jobs, "", 403}, // who is the token's own user
		{"no name", first, token, "", "GET", jobs, "", 401},
		{"root", first, token, "root", "GET", jobs, "", 403},
		{"root, with require_user_name", strict, token, "root", "GET", jobs, "", 401},
		{"nobody", first, token, "nobody", "GET", jobs, "", 403},
		{"an unknown user", first, token, "nobody-has-this-name", "GET", jobs, "", 403},
		{"a number", first, token, "0", "GET", jobs, "", 403},
		{"a low uid", strict, token, alice.Name, "GET", jobs, "", 403},
		{"a gateway token that acts for itself", first, plain, alice.Name, "GET", jobs, "", 401},
	} {
		a := send(tt.address, tt.token, tt.user, tt.method, tt.path, tt.body)
		if a.Status != tt.status {
			t.Errorf("%s: %d %.300s", tt.name, a.Status, a.Text)
		}
	}
	if a := send(first, token, alice.Name, "GET", ping, ""); a.UserOrStatus() != "as "+alice.Name {
		t.Errorf("a ping: %.300s", a.Text)
	}
	a := send(first, token, alice.Name, "POST", submit, l.JobRequest("#!/bin/sh\nid -un\n", nil))
	if a.Status != 200 {
		t.Fatalf("submitted: %d %.300s", a.Status, a.Text)
	}
	job := int(a.Get("job_id").(float64))
	if a := l.AwaitEnd(job); a.Get("jobs", 0, "user_name") != alice.Name {
		t.Errorf("the job is %v's", a.Get("jobs", 0, "user_name"))
	}
	if got := l.Output(t, job); got != alice.Name+"\n" {
		t.Errorf("the job printed %q", got)
	}
	// What a member's jobs write is read as this member, and the audit log shows who does.
	output := fmt.Sprintf("/sched/v0.0.43/job/%d/stdout", job)
	if a := send(first, token, alice.Name, "GET", output, ""); a.Status != 200 || a.Text != alice.Name+"\n" {
		t.Errorf("output: %d %.300s", a.Status, a.Text)
	}
	if a := send(first, token, bob.Name, "GET", output, ""); a.Status != 403 {
		t.Errorf("output, as a user who is not a member: %d %.300s", a.Status, a.Text)
	}
	harness.Eventually(t, "the audit log has the access", func() bool {
		text, err := os.ReadFile(auditLog)
		harness.Must(t, err)
		return strings.Contains(string(text), `job/{job_id}/stdout`)
	})
	if log := gateway.Logged(); !strings.Contains(log, fmt.Sprintf(`user="%s by %s" `, alice.Name, bob.Name)) || !strings.Contains(log, "gateway_token="+id) || strings.Contains(log, token[:60]) {
		t.Error("the log lacks both users or the token's id, or has the token")
	}
	harness.Eventually(t, "the audit log has both users and the token's id", func() bool {
		text, err := os.ReadFile(auditLog)
		harness.Must(t, err)
		return strings.Contains(string(text), fmt.Sprintf(`"act_as":%q`, alice.Name)) && strings.Contains(string(text), fmt.Sprintf(`"gateway_token":%q`, id))
	})

	// The members' streams end with the token.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	follow := func(token string, headers ...string) <-chan string {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+first+jobs, nil)
		harness.Must(t, err)
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("X-SCHED-USER-TOKEN", token)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := http.DefaultClient.Do(r)
		harness.Must(t, err)
		if answer.StatusCode != 200 {
			t.Fatalf("stream: %d", answer.StatusCode)
		}
		ended := make(chan string, 1)
		go func() {
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			ended <- string(text)
		}()
		return ended
	}
	wantEnd := func(ended <-chan string) {
		t.Helper()
		if text := <-ended; !strings.Contains(text, "event: end\ndata: {\"reason\":\"the gateway token is no longer accepted\"}") {
			t.Errorf("the stream ended with %q", text[max(0, len(text)-300):])
		}
	}
	other, otherID := create()
	revoked, kept := follow(token, "X-SCHED-USER-NAME", alice.Name), follow(other, "X-SCHED-USER-NAME", alice.Name)
	begun := time.Now()
	l.Schedctl(t, "token", "revoke", "--register", path, id)
	wantEnd(revoked)
	t.Logf("the stream ended after %v", time.Since(begun))
	refused := func(token string) { // by the worker that has not ended the stream a moment later
		t.Helper()
		harness.Eventually(t, "each worker refuses the token", func() bool { return send(first, token, alice.Name, "GET", jobs, "").Status == 401 })
	}
	refused(token)
	if a := send(first, other, alice.Name, "GET", jobs, ""); a.Status != 200 {
		t.Errorf("another token gets %d", a.Status)
	}
	// A revocation of the member's tokens is about what others do as this user, too.
	l.Schedctl(t, "token", "revoke", "--register", path, "--user", alice.Name)
	wantEnd(kept)
	refused(other)
	if list := l.Schedctl(t, "token", "list", "--register", path); strings.Count(list, " "+group.Name+" ") != 2 || !strings.Contains(list, otherID) {
		t.Errorf("the list is:\n%s", list)
	}

	// Operators are refused, and those who are none again are served.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	third, _ := create()
	level := func(level string) {
		t.Helper()
		c := harness.NewClient(func() (net.Conn, error) { return net.Dial("tcp", first) })
		a, err := l.TryRequest(c, "POST", accounting, fmt.Sprintf(`{"users":[{"name":%q,"administrator_level":[%q]}]}`, alice.Name, level))
		harness.Must(t, err)
		a.Want(t, 200)
	}
	level("Operator")
	l.StartGateway(t, low, later)
	if a := send(later, third, alice.Name, "GET", jobs, ""); a.Status != 403 || !strings.Contains(a.Text, "the token does not act for this user") {
		t.Errorf("an operator: %d %.300s", a.Status, a.Text)
	}
	onlyController := address()
	l.StartGateway(t, low, "-s", "openapi/schedctld", onlyController)
	if a := send(onlyController, third, alice.Name, "GET", jobs, ""); a.Status != 403 {
		t.Errorf("an operator, at a gateway without accounting: %d %.300s", a.Status, a.Text)
	}
	level("None")
	harness.Eventually(t, "the user is no operator", func() bool { return send(later, third, alice.Name, "GET", jobs, "").Status == 200 })
	l.Daemons["scheddbd"].Stop()
	harness.Eventually(t, "nobody is served while it is unknown who is an operator", func() bool {
		return send(later, third, alice.Name, "GET", jobs, "").Status == 503
	})
}
