package rest

import (
	"crypto/rand"
	"net/http"
	"time"

	"schedrestd/api"
	"schedrestd/auth"
)

// A Call is one request with its answer. Its own methods are those that use both
// halves. Only one goroutine may use it.
type Call struct {
	request
	answer
}

func (s *Server) newCall(w http.ResponseWriter, r *http.Request) *Call {
	c := &Call{
		request: request{server: s, r: r, id: rand.Text(), startedAt: time.Now()},
		answer:  answer{w: &response{ResponseWriter: w}, ctx: r.Context(), media: MediaJSON},
	}
	if peer, _ := auth.PeerFrom(c.ctx); peer.RequestID != "" && Redact(peer.RequestID) == peer.RequestID {
		c.id, c.fromProxy = peer.RequestID, true
	}
	w.Header().Set("X-Request-Id", c.id)
	return c
}

// Envelope returns the envelope of the answer.
func (c *Call) Envelope() api.Envelope {
	for i, w := range c.warnings {
		c.warnings[i].Description, c.warnings[i].Source = Redact(w.Description), Redact(w.Source)
	}
	return api.Envelope{Meta: c.meta(c.ctx), Warnings: c.warnings}
}
