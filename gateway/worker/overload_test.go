package worker

import (
	"io"
	"net/http"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestOverloadedWithABody checks that a request that waits too long for its
// turn is answered even if its body has not arrived. A client must not be able
// to delay the answer by sending only part of the body.
func TestOverloadedWithABody(t *testing.T) {
	limits := testLimits
	limits.Call = 50 * time.Millisecond
	entered, release := make(chan bool), make(chan bool)
	st := newTestServer(t, work.Setup{Setup: ipc.Setup{Requests: 1}, Limits: limits}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- true
		<-release
	}))
	io.WriteString(st.connect(), get+host+"\r\n")
	<-entered
	c := st.connect()
	io.WriteString(c, "POST /ok HTTP/1.1\r\n"+host+"Content-Length: 1000\r\n\r\n{")
	resp := wantAnswerAndEnd(t, c)
	if wantEnvelope(t, resp); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	release <- true
}
