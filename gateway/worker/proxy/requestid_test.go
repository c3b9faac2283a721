package proxy

import (
	"net/http"
	"strings"
	"testing"

	"schedrestd/auth"
	"schedrestd/gateway/worker/conntest"
)

// TestProxyID checks that only a trusted proxy can set the id of a request. An
// id that is too long or has invalid characters must be ignored.
func TestProxyID(t *testing.T) {
	const proxy, client, trace = "192.0.2.1:5", "203.0.113.1:5", "4bf92f3577b34da6a3ce929d0e0e4736"
	const parent = "00-" + trace + "-00f067aa0ba902b7-01"
	o := Proxies{testAdmission}
	for _, tt := range []struct {
		name, addr  string
		ids, traces []string
		want        string
	}{
		{"an id", proxy, []string{"abc-123"}, nil, "abc-123"},
		{"through a UNIX socket", "uid 13", []string{"abc"}, nil, "abc"},
		{"another user through it", "uid 1000", []string{"abc"}, nil, ""},
		{"a client's", client, []string{"abc"}, []string{parent}, ""},
		{"the longest", proxy, []string{strings.Repeat("x", 128)}, nil, strings.Repeat("x", 128)},
		{"longer", proxy, []string{strings.Repeat("x", 129)}, nil, ""},
		{"empty", proxy, []string{""}, nil, ""},
		{"a space", proxy, []string{"a b"}, nil, ""},
		{"a line end", proxy, []string{"a\nlevel=ERROR"}, nil, ""},
		{"a terminal's code", proxy, []string{"\x1b[2J"}, nil, ""},
		{"not ASCII", proxy, []string{"ü"}, nil, ""},
		{"not UTF-8", proxy, []string{"\xff"}, nil, ""},
		{"DEL", proxy, []string{"\x7f"}, nil, ""},
		{"two", proxy, []string{"a", "b"}, nil, ""},
		{"both", proxy, []string{"abc"}, []string{parent}, "abc"},
		{"a bad id and a trace", proxy, []string{"a b"}, []string{parent}, trace},
		{"a trace", proxy, nil, []string{parent}, trace},
		{"two traces", proxy, nil, []string{parent, parent}, ""},
		{"a later version", proxy, nil, []string{"01-" + trace + "-00f067aa0ba902b7-01-more"}, trace},
		{"more than version 00 has", proxy, nil, []string{parent + "-more"}, ""},
		{"the version that can't be", proxy, nil, []string{"ff" + parent[2:]}, ""},
		{"capitals", proxy, nil, []string{strings.ToUpper(parent)}, ""},
		{"no trace", proxy, nil, []string{"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"}, ""},
		{"no parent", proxy, nil, []string{"00-" + trace + "-0000000000000000-01"}, ""},
		{"a short one", proxy, nil, []string{"00-" + trace[1:] + "-00f067aa0ba902b7-01"}, ""},
		{"a list", proxy, nil, []string{parent + ", " + parent}, ""},
		{"an endless one", proxy, nil, []string{"01" + parent[2:] + strings.Repeat("-x", 1000)}, ""},
	} {
		r := conntest.RequestFrom(tt.addr)
		r.Header["X-Request-Id"], r.Header["Traceparent"] = tt.ids, tt.traces
		peer, _ := auth.PeerFrom(o.WithData(r).Context())
		if peer.RequestID != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, peer.RequestID, tt.want)
		}
	}
	r := conntest.RequestFrom(proxy, "203.0.113.9")
	r.Header = http.Header{"X-Forwarded-For": r.Header["X-Forwarded-For"], "X-Request-Id": {"abc"}}
	if peer, _ := auth.PeerFrom(o.WithData(r).Context()); peer.Forwarded != "203.0.113.9" || peer.RequestID != "abc" {
		t.Errorf("address and id: %+v", peer)
	}
}
