package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"schedrestd/gateway/worker"
	"schedrestd/gateway/worker/keys"
	"schedrestd/ipc/work"
)

// singleEnv names an environment variable that holds the settings of a
// single-process server as JSON. If the variable is set, this program runs as
// that server.
const singleEnv = "SCHEDRESTD_BENCH_SINGLE"

// singleConfig is the configuration of the single process.
type singleConfig struct {
	Listen string
	Setup  work.Setup
}

// serveSingle serves the API that a worker serves, with the same time limits.
// It runs in a single process, which accepts the connections itself.
func serveSingle(text string) {
	var s singleConfig
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		var handler http.Handler
		if handler, err = worker.NewHandler(s.Setup, keys.New(), nil); err == nil {
			server := http.Server{Addr: s.Listen, Handler: handler, ReadHeaderTimeout: s.Setup.Limits.ReadHeader, IdleTimeout: s.Setup.Limits.Idle}
			err = server.ListenAndServe()
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
