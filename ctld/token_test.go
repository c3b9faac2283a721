package ctld

import (
	"testing"
	"time"

	"schedrestd/rpc/server"
)

// A token that was stolen for a minute must not become one for a year.
func TestTokenDoesNotOutliveTheOneItIsAskedWith(t *testing.T) {
	c := &Controller{log: quiet, cfg: Config{Tokens: &Tokens{}}}
	in := func(d time.Duration) server.Identity { return server.Identity{Expires: time.Now().Add(d)} }
	tests := []struct {
		name     string
		who      server.Identity
		seconds  uint32
		at, most time.Duration // at least, at the most; 0: refused
	}{
		{"kernel", server.Identity{Kernel: true}, 86400, 24 * time.Hour, 24 * time.Hour},
		{"kernel, for years", server.Identity{Kernel: true}, 366 * 86400, 0, 0},
		{"by a token of a minute", in(time.Minute), 366 * 86400 / 13, 50 * time.Second, time.Minute},
		{"by a token of a minute, for less", in(time.Minute), 10, 10 * time.Second, 10 * time.Second},
		{"by a token in its leeway", in(-time.Second), 10, 0, 0},
		{"by a token without an end", server.Identity{}, 10, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.lifespan(tt.who, tt.seconds)
			if (err != nil) != (tt.most == 0) || got < tt.at || got > tt.most {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
