package server

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/limit"
)

func user(uid uint32) source { return source{user: true, uid: uid} }

// connFrom returns a connection from the source src to the server s.
func connFrom(s *Server, src source) *conn {
	return &conn{server: s, local: true, hasOrigin: true, cachedOrigin: src}
}

// TestLogIsLimitedPerSource checks that lines about one source are limited,
// and that the omitted lines are counted. All lines about another source must
// be written.
func TestLogIsLimitedPerSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log buffer
		s := &Server{Log: slog.New(slog.NewTextHandler(&log, nil))}
		s.startLocked()
		flood, guesser := connFrom(s, user(1000)), connFrom(s, source{addr: netip.MustParseAddr("192.0.2.7")})
		for i := range 5000 {
			flood.logLimited(slog.LevelInfo, "credential refused")
			flood.logLimited(slog.LevelDebug, "not shown and not counted")
			if i == 4000 {
				guesser.logLimited(slog.LevelInfo, "credential refused")
			}
		}
		if n := strings.Count(log.String(), `source="uid 1000"`); n != int(limit.ClientLines.Burst) {
			t.Errorf("%d lines about the flood", n)
		}
		if n := strings.Count(log.String(), "source=192.0.2.7"); n != 1 {
			t.Errorf("%d lines about the guesser", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := fmt.Sprintf(`msg="log lines left out" lines=%d period=1m0s source="uid 1000"`, 5000-int(limit.ClientLines.Burst)); strings.Count(log.String(), want) != 1 {
			t.Errorf("no line %s", want)
		}
		if strings.Count(log.String(), "left out") != 1 {
			t.Error("more was left out than that")
		}
		before := len(log.String())
		flood.logLimited(slog.LevelInfo, "credential refused")
		if len(log.String()) == before {
			t.Error("nothing is logged in the next period")
		}
	})
}

func TestSourceNames(t *testing.T) {
	for want, s := range map[string]source{
		"uid 0":         user(0),
		"192.0.2.7":     {addr: netip.MustParseAddr("192.0.2.7")},
		"2001:db8::/64": {addr: netip.MustParseAddr("2001:db8::")},
		"others":        {},
	} {
		if s.String() != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
}
