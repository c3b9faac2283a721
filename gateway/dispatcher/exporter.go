package dispatcher

import (
	"errors"
	"sync/atomic"
	"time"

	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/gateway/dispatcher/service"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// A scraper answers the questions of one exporter process. It reads the totals
// from the dispatcher, so they are not lost when the exporter exits.
type scraper struct {
	*dispatcher
	process *service.Process
	ready   chan struct{} // closed when process is set
	busy    atomic.Bool   // samples are being sent
	quota   *rate.Bucket
}

// export runs an exporter until the gateway shuts down, and starts a new one
// when the exporter exits. No other process depends on the exporter.
func (d *dispatcher) export() {
	for failures := 0; ; failures++ {
		startedAt := time.Now()
		err := d.exportOnce()
		select {
		case <-d.Done:
			return
		default:
		}
		if time.Since(startedAt) > 2*pool.Backoff(failures) {
			failures = 0
		}
		wait := pool.Backoff(failures)
		d.log.Error("exporter exited", "because", err, "pause", wait)
		select {
		case <-time.After(wait):
		case <-d.Done:
			return
		}
	}
}

// exportOnce runs an exporter, and returns the reason why it exited.
func (d *dispatcher) exportOnce() error {
	x := &scraper{dispatcher: d, ready: make(chan struct{}), quota: rate.New(limit.Samples, time.Now())}
	var g *generation
	if err := d.Call(func() error { g = d.current; g.Hold(); return nil }); err != nil {
		return err
	}
	var err error
	x.process, err = d.exporter.Start(d.starter, g.ID, service.Hooks{Report: d.reportViolation, Handle: x.handle})
	d.Do(g.Release) // only the start of the exporter needs the generation
	if err != nil {
		return err
	}
	close(x.ready)
	select {
	case <-x.process.Done:
	case <-d.Done:
		x.process.Stop()
	}
	return x.process.Err()
}

// handle handles a message of the exporter.
func (x *scraper) handle(m ipc.Message) (handled bool, err error) {
	switch m.(type) {
	case *query.Scrape:
		if x.busy.Swap(true) || !x.quota.Take(time.Now(), 1) {
			return true, errors.New("sent Scrape too often")
		}
		go x.answer()
		return true, nil
	}
	return false, nil
}

func (x *scraper) answer() {
	<-x.ready
	var list []query.Sample
	if x.Call(func() error { list = x.Samples(); return nil }) != nil {
		return
	}
	for last := false; !last; {
		n := min(len(list), query.MaxSamples)
		last = n == len(list)
		if last {
			x.busy.Store(false) // as soon as the exporter has the last part, it may ask again
		}
		if x.process.Channel.Send(&query.Samples{Last: last, Cells: list[:n]}) != nil {
			return // the exporter has exited
		}
		list = list[n:]
	}
}
