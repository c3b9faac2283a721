package handlers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"schedrestd/model"
)

// TestHostileHosts checks that a short host list that stands for billions of
// nodes is not expanded.
func TestHostileHosts(t *testing.T) {
	f := demo()
	f.counts.PendingHosts = []model.PendingHosts{{Type: 6009, Hosts: "n[1-4000000000]"}}
	server := httptest.NewServer(New(config(f)))
	defer server.Close()
	answer, err := http.DefaultClient.Do(requestTo(server, "/sched/v0.0.43/diag"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode == http.StatusOK || n > 10<<20 {
		t.Errorf("status %d, %d bytes, %v", answer.StatusCode, n, err)
	}
}
