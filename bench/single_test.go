package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"schedrestd/ipc/work"
	"schedrestd/worker"
)

// singleEnv holds, as JSON, the settings that make this program the single
// process.
const singleEnv = "SCHEDRESTD_BENCH_SINGLE"

// single is the configuration of the single process.
type single struct {
	Listen string
	Setup  work.Setup
}

// serveSingle serves the same as a worker, with the same time limits, from one
// process that accepts for itself.
func serveSingle(text string) {
	var s single
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		var handler http.Handler
		if handler, err = worker.Join(s.Setup, worker.NewTokens(), nil); err == nil {
			server := http.Server{Addr: s.Listen, Handler: handler, ReadHeaderTimeout: s.Setup.Limits.ReadHeader, IdleTimeout: s.Setup.Limits.Idle}
			err = server.ListenAndServe()
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
