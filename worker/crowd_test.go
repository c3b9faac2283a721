package worker

import (
	"io"
	"net/http"
	"testing"
	"time"

	"schedrestd/ipc"
)

// TestCrowdedWithABody: a request that finds no room in its time is answered without its body: to wait
// for that would be to wait for whoever has sent half.
func TestCrowdedWithABody(t *testing.T) {
	limits := raw
	limits.Call = 50 * time.Millisecond
	entered, leave := make(chan bool), make(chan bool)
	st := newStage(t, ipc.Setup{Limits: limits, Requests: 1}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- true
		<-leave
	}))
	io.WriteString(st.connect(), get+host+"\r\n")
	<-entered
	c := st.connect()
	io.WriteString(c, "POST /ok HTTP/1.1\r\n"+host+"Content-Length: 1000\r\n\r\n{")
	resp := wantAnswerAndEnd(t, c)
	if wantEnvelope(t, resp); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	leave <- true
}
