package proxy

import (
	"fmt"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// ambiguity is a request that a proxy and the gateway could interpret
// differently. A user sends the request to the proxy, which adds the user's
// name and a token that may act for every user. The ambiguous headers are an
// attempt to make the gateway ignore the name that the proxy added.
type ambiguity struct {
	name    string
	headers string // lines that the user adds; {holder} stands for the token's owner, {user} for the user
	want    string // result if the request goes directly to the gateway, with the token and the user's name
}

// ambiguities are requests with ambiguous headers about the user.
var ambiguities = []ambiguity{
	{"the name twice", "X-SCHED-USER-NAME: {holder}", "401"},
	{"the same name twice", "X-SCHED-USER-NAME: {user}", "401"},
	{"an empty name beside", "X-SCHED-USER-NAME:", "401"},
	{"a blank name beside", "X-SCHED-USER-NAME: \t ", "401"},
	{"the name in the other spelling", "X-SLURM-USER-NAME: {holder}", "401"},
	{"an empty name in the other spelling", "X-SLURM-USER-NAME:", "401"},
	{"the name in small letters", "x-sched-user-name: {holder}", "401"},
	{"the name with underscores", "X_SCHED_USER_NAME: {holder}", "401"},
	{"the name with some underscores", "X-Sched_User-Name: {holder}", "401"},
	{"the other spelling with underscores", "x_slurm_user_name: {holder}", "401"},
	{"a blank before the colon", "X-SCHED-USER-NAME : {holder}", "400"},
	{"a tab before the colon", "X-SCHED-USER-NAME\t: {holder}", "400"},
	{"a folded name", "X-SCHED-USER-NAME:\r\n {holder}", "400"},
	{"a name folded into the header before", "X-Other: 1\r\n\tX-SCHED-USER-NAME: {holder}", "400"},
	{"two names in one", "X-SCHED-USER-NAME: {user}, {holder}", "401"},
	{"a bare line end in a name", "X-Other: 1\nX-SCHED-USER-NAME: {holder}", "401"},
	{"a bare return in a header", "X-Other: 1\rX-SCHED-USER-NAME: {holder}", "400"},
	{"a zero byte in a header", "X-Other: 1\x00\r\nX-SCHED-USER-NAME: {holder}", "400"},
	{"the token twice", "X-SCHED-USER-TOKEN: x.y.z", "401"},
	{"an empty token beside", "X-SCHED-USER-TOKEN:", "401"},
	{"the token in the other spelling", "X-SLURM-USER-TOKEN: x.y.z", "401"},
	{"the token with underscores", "X_SCHED_USER_TOKEN: x.y.z", "401"},
	{"Bearer beside", "Authorization: Bearer x.y.z", "401"},
	{"an empty Authorization beside", "Authorization:", "401"},
	{"Connection lists the name", "Connection: X-SCHED-USER-NAME", "401"},
	{"Connection lists the name among others", "Connection: close, X-SCHED-USER-NAME", "401"},
	{"Connection lists the name in small letters", "Connection: x-sched-user-name, keep-alive", "401"},
	{"Connection lists the name in quotes", `Connection: close, "X-SCHED-USER-NAME"`, "401"},
	{"Connection lists the name after a semicolon", "Connection: close;X-SCHED-USER-NAME", "401"},
	{"Connection lists the name in its second line", "Connection: close\r\nConnection: X-SCHED-USER-NAME", "401"},
	{"Connection lists the name, folded", "Connection: close,\r\n X-SCHED-USER-NAME", "400"},
	{"Connection lists the other spelling", "Connection: X-SLURM-USER-NAME", "401"},
	{"Connection lists the token", "Connection: X-SCHED-USER-TOKEN", "401"},
	{"Connection lists Authorization", "Connection: close, Authorization", "401"},
	{"Proxy-Connection lists the name", "Proxy-Connection: X-SCHED-USER-NAME", "401"},
	{"trailing blanks after the other spelling", "X-SLURM-USER-NAME: {holder} \t ", "401"},
}

// TestAmbiguities sends ambiguous requests directly and through proxies, some
// of which are configured carelessly. Each request
// names a user to act as. The gateway must serve it as this user or not at all,
// and must refuse requests that are still ambiguous when they arrive. Because
// require_user_name is not set, a request that lost its user name would be
// served as the token's owner. Only the rules for headers prevent this.
func TestAmbiguities(t *testing.T) {
	t.Parallel()
	f := harness.NewProxyLab(t)
	fill := strings.NewReplacer("{holder}", f.TokenOwner, "{user}", f.User.Name)
	for _, a := range ambiguities {
		t.Run(a.name, func(t *testing.T) {
			var outcomes []string
			for _, frontend := range f.Frontends {
				request := fmt.Sprintf("GET /sched/%s/ping HTTP/1.1\r\nHost: cluster\r\n%%s%%s\r\n", harness.Version)
				added := fill.Replace(a.headers) + "\r\n"
				if !strings.Contains(added, "onnection: ") {
					request = strings.Replace(request, "Host", "Connection: close\r\nHost", 1)
				}
				for _, text := range []string{fmt.Sprintf(request, frontend.Headers, added), fmt.Sprintf(request, added, frontend.Headers)} {
					got := harness.Exchange(t, frontend.Address, 1, text)
					if len(got) == 0 {
						t.Errorf("%s: no answer", frontend.Name)
						continue
					}
					outcomes = append(outcomes, frontend.Name+": "+got[0].UserOrStatus())
					checkOutcome(f, t, frontend, got[0], fill.Replace(a.want))
				}
			}
			t.Log(strings.Join(outcomes, "; "))
		})
	}
	for _, name := range singleNames {
		t.Run("sent as "+strings.TrimSpace(name.headers), func(t *testing.T) {
			text := fmt.Sprintf("GET /sched/%s/ping HTTP/1.1\r\nHost: cluster\r\nX-SCHED-USER-TOKEN: %s\r\n%s\r\n\r\n", harness.Version, f.OwnToken, fill.Replace(name.headers))
			got := harness.Exchange(t, f.Frontends[0].Address, 1, text)
			if len(got) != 1 || got[0].UserOrStatus() != fill.Replace(name.want) {
				t.Errorf("counted %v, want %s", got, name.want)
			}
		})
	}
	checkServedOnly(f, t)
}

// singleNames are headers that name at most one user. Some name no user or are
// misspelt, like the headers of a misconfigured proxy or of a proxy that does
// not know the user.
var singleNames = []ambiguity{
	{headers: "X-SCHED-USER-NAME:", want: "401"},
	{headers: "X-SCHED-USER-NAME: \t ", want: "401"},
	{headers: "X-SLURM-USER-NAME:", want: "401"},
	{headers: "X_SCHED_USER_NAME: {user}", want: "401"},
	{headers: "X_SLURM_USER_NAME: {user}", want: "401"},
	{headers: `X-SCHED-USER-NAME: "{user}"`, want: "401"},
	{headers: "X-SCHED-USER-NAME: {user}@example.org", want: "401"},
	{headers: "X-SCHED-USER-NAME: -", want: "401"},
	{headers: "X-SCHED-USER-NAME:{user} \t", want: "as {user}"},
	{headers: "X-SLURM-USER-NAME: {user}", want: "as {user}"},
}

// checkOutcome checks the outcome of a request. If the request went through a
// proxy, it must have been served as the user, or refused. If it was sent
// directly, its outcome must be want.
func checkOutcome(f *harness.ProxyLab, t *testing.T, frontend harness.Frontend, a harness.Answer, want string) {
	t.Helper()
	got := a.UserOrStatus()
	if frontend.Proxied && got != "as "+f.User.Name && (a.Status < 400 || a.Status > 499) || !frontend.Proxied && got != want {
		t.Errorf("%s: counted %s: %s", frontend.Name, got, a.Text)
	}
}

// checkServedOnly fails the test unless the gateway served requests only as
// f.User, with the token of f.TokenOwner. It checks the log, which also
// contains requests whose answers the test did not read.
func checkServedOnly(f *harness.ProxyLab, t *testing.T) {
	t.Helper()
	got := f.Gateway.StopAndCountUsers()
	identity := f.User.Name + " by " + f.TokenOwner
	if got[identity] == 0 || len(got) != 1 {
		t.Errorf("according to its log, the gateway served %v, want only %q", got, identity)
	}
}

// TestFraming checks that the proxy and the gateway agree on where a request
// ends, or refuse the request. A request that is hidden in or after the body of
// another request must never become another user's request. It must also never
// get the headers that a proxy adds to the next request.
func TestFraming(t *testing.T) {
	t.Parallel()
	f := harness.NewProxyLab(t)
	path := "/sched/" + harness.Version + "/ping"
	hidden := "GET " + path + " HTTP/1.1\r\nHost: cluster\r\nX-SCHED-USER-NAME: " + f.TokenOwner + "\r\n\r\n"
	// prefix is an incomplete request. The lines of the next request would
	// become its headers.
	prefix := "GET " + path + " HTTP/1.1\r\nHost: cluster\r\nX-SCHED-USER-NAME: " + f.TokenOwner + "\r\nX-Rest: "
	chunks := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text) }
	get := func(headers, body string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: cluster\r\n{own}" + headers + "\r\n" + body
	}
	post := func(headers, body string) string {
		return "POST /sched/" + harness.Version + "/job/submit HTTP/1.1\r\nHost: cluster\r\nContent-Type: application/json\r\n{own}" + headers + "\r\n" + body
	}
	finalRequest := get("Connection: close\r\n", "")
	tests := []struct {
		name string
		text string // {own} stands for the headers that identify the user
		want string // result of the first request, if it is sent directly
	}{
		{"HTTP/1.0", "GET " + path + " HTTP/1.0\r\n{own}\r\n", "as {user}"},
		{"HTTP/1.0 that lists the name", "GET " + path + " HTTP/1.0\r\nConnection: X-SCHED-USER-NAME\r\n{own}\r\n", "401"},
		{"HTTP/1.0 with chunks", strings.Replace(post("Transfer-Encoding: chunked\r\n", chunks(hidden)), "1.1", "1.0", 1), ""},
		{"HTTP/0.9", "GET " + path + "\r\n", "400"},
		{"an absolute address", "GET http://cluster" + path + " HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n{own}\r\n", "as {user}"},
		{"an absolute address of another host", "GET http://elsewhere.invalid" + path + " HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n{own}\r\n", "as {user}"},
		{"a user in the address", "GET http://" + f.TokenOwner + "@cluster" + path + " HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n{own}\r\n", "400"},
		{"two hosts", "GET " + path + " HTTP/1.1\r\nHost: cluster\r\nHost: elsewhere.invalid\r\nConnection: close\r\n{own}\r\n", "400"},
		{"a line before the headers", "GET " + path + " HTTP/1.1\r\n X-SCHED-USER-NAME: " + f.TokenOwner + "\r\nHost: cluster\r\n{own}\r\n", "400"},
		{"pipelined", get("", "") + get("", "") + finalRequest, "as {user}"},
		{"pipelined after one without a credential", hidden + finalRequest, "401"},
		{"pipelined before one without a credential", get("", "") + hidden + finalRequest, "as {user}"},
		{"a body of a GET", get(fmt.Sprintf("Content-Length: %d\r\n", len(hidden)), hidden) + finalRequest, ""},
		{"a length and chunks", post(fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", len(chunks(""))+len(hidden)), chunks("")+hidden) + finalRequest, ""},
		{"chunks and a length", post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", chunks(hidden)) + finalRequest, ""},
		{"chunks and a length, without an end", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+prefix) + finalRequest, ""},
		{"two lengths", post("Content-Length: 0\r\nContent-Length: "+fmt.Sprint(len(prefix))+"\r\n", prefix) + finalRequest, "400"},
		{"two lengths in one", post("Content-Length: 0, "+fmt.Sprint(len(prefix))+"\r\n", prefix) + finalRequest, "400"},
		{"a length with a sign", post("Content-Length: +"+fmt.Sprint(len(prefix))+"\r\n", prefix) + finalRequest, "400"},
		{"a length with a blank", post("Content-Length : "+fmt.Sprint(len(prefix))+"\r\n", prefix) + finalRequest, "400"},
		{"a folded length", post("Content-Length:\r\n "+fmt.Sprint(len(prefix))+"\r\n", prefix) + finalRequest, ""},
		{"chunked, twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunks(hidden)) + finalRequest, ""},
		{"chunked and something else", post("Transfer-Encoding: chunked, identity\r\n", chunks(hidden)) + finalRequest, "501"},
		{"something else, then chunked", post("Transfer-Encoding: x, chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+prefix) + finalRequest, "501"},
		{"nearly chunked", post("Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+prefix) + finalRequest, "501"},
		{"chunked after a tab", post("Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+prefix) + finalRequest, ""},
		{"chunked after a control character", post("Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+prefix) + finalRequest, ""},
		{"chunked, a blank before the colon", post("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+prefix) + finalRequest, "400"},
		{"chunked with an underscore", post("Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+prefix) + finalRequest, ""},
		{"chunked in capitals", post("TRANSFER-ENCODING: CHUNKED\r\nContent-Length: 5\r\n", "0\r\n\r\n"+prefix) + finalRequest, ""},
		{"chunks of a wrong length", post("Transfer-Encoding: chunked\r\n", "-1\r\n"+hidden) + finalRequest, ""},
		{"chunks with a bare line end", post("Transfer-Encoding: chunked\r\n", "0\n\n"+hidden) + finalRequest, ""},
		{"a chunk's extension with a line end", post("Transfer-Encoding: chunked\r\n", "0;a\nb\r\n\r\n"+prefix) + finalRequest, ""},
		{"a name in a trailer", post("Transfer-Encoding: chunked\r\nTrailer: X-SCHED-USER-NAME\r\n", "2\r\n{}\r\n0\r\nX-SCHED-USER-NAME: "+f.TokenOwner+"\r\n\r\n") + finalRequest, ""},
		{"an upgrade", get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", hidden) + finalRequest, "as {user}"},
	}
	fill := strings.NewReplacer("{user}", f.User.Name)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var outcomes []string
			for _, frontend := range f.Frontends {
				answers := harness.Exchange(t, frontend.Address, 10, strings.ReplaceAll(tt.text, "{own}", frontend.Headers))
				if len(answers) == 0 && !frontend.Proxied {
					t.Error("no answer")
				}
				for i, got := range answers {
					outcomes = append(outcomes, frontend.Name+": "+got.UserOrStatus())
					switch want := fill.Replace(tt.want); {
					case i == 0 && !frontend.Proxied && want != "" && got.UserOrStatus() != want:
						t.Errorf("%s: counted %s, want %s: %s", frontend.Name, got.UserOrStatus(), want, got.Text)
					case got.UserOrStatus() != "as "+f.User.Name && got.Status < 400:
						t.Errorf("%s: counted %s: %s", frontend.Name, got.UserOrStatus(), got.Text)
					}
				}
			}
			t.Log(strings.Join(outcomes, "; "))
		})
	}
	checkServedOnly(f, t)
}
