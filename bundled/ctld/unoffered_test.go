package ctld

import (
	"testing"

	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// TestUnsupported checks that each request in the map unsupported is refused
// with the right error number, and that the map contains no supported request.
func TestUnsupported(t *testing.T) {
	c, _ := controller(t, Config{Node: "here"})
	handlers := c.Handlers()
	for kind := range unsupported {
		_, _, err := handlers[kind](t.Context(), &server.Request{Type: kind})
		if number, text := fault.Number(err); number != fault.NotSupported || text == "this controller does not support " {
			t.Errorf("%d: %d %q", kind, number, text)
		}
	}
	for _, kind := range []message.Type{message.RequestPing, message.RequestSubmitBatchJob, message.RequestJobUserInfo, message.RequestJobReady} {
		if unsupported[kind] != "" {
			t.Errorf("message %d is supported, but listed as unsupported", kind)
		}
	}
}
