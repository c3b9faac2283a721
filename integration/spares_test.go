package integration

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// TestSpares: who asks much has his worker connect to the controller by sockets that were readied for it, and is answered
// as ever.
func TestSpares(t *testing.T) {
	a := admitting(t, newLab(t))
	client := source(t, "127.0.0.1", false)
	client.Transport.(*http.Transport).MaxConnsPerHost = 0
	counted := regexp.MustCompile(`errands\.dialled=(\d+).* errands\.spares=(\d+)`)
	eventually(t, "spares are used", func() bool {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					if status, _ := a.ask(client); status != http.StatusOK {
						t.Errorf("answered %d", status)
					}
				}
			})
		}
		wg.Wait()
		must(t, syscall.Kill(a.PID(), syscall.SIGUSR1))
		var all [][]string
		eventually(t, "the counters are in the log", func() bool {
			all = counted.FindAllStringSubmatch(a.log(), -1)
			return len(all) > 0
		})
		last := all[len(all)-1]
		spares, _ := strconv.Atoi(last[2])
		return spares > 0
	})
}
