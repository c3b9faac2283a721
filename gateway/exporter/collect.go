package exporter

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"schedrestd/internal/release"
	"schedrestd/ipc/query"
	"schedrestd/metric"
	"schedrestd/metric/table"
)

const (
	// answerTimeout is how long the exporter waits for all samples from the
	// dispatcher.
	answerTimeout = 5 * time.Second

	// cacheTTL is how long samples are reused. Without caching, several
	// Prometheus servers, or a client that scrapes continuously, could keep the
	// dispatcher busy.
	cacheTTL = 100 * time.Millisecond
)

// handler returns the handler of scrapes.
func (e *exporter) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(table.New(), e.samples))
	mux := http.NewServeMux()
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError,
		ErrorLog:      slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		var source netip.Addr
		end := func() {}
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.place.Keep()
			source, end = c.source, c.place.Offer
		}
		answer := &stored{header: http.Header{}, status: http.StatusOK}
		if place, err := e.places.Acquire(r.Context(), source); err == nil {
			metrics.ServeHTTP(answer, r)
			place.Release()
		} else {
			http.Error(answer, "too many concurrent scrapes", http.StatusServiceUnavailable)
		}
		end() // before the answer is sent, because the client may read it slowly or not at all
		answer.send(w)
	})
	return mux
}

// stored is an http.ResponseWriter that keeps the answer in memory.
type stored struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (s *stored) Header() http.Header         { return s.header }
func (s *stored) WriteHeader(status int)      { s.status = status }
func (s *stored) Write(b []byte) (int, error) { return s.body.Write(b) }

func (s *stored) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), s.header)
	w.WriteHeader(s.status)
	_, _ = w.Write(s.body.Bytes())
}

var errTimeout = errors.New("the dispatcher did not send its samples in time")

// samples returns the dispatcher's samples. It requests new ones if the last
// ones are older than cacheTTL.
func (e *exporter) samples() (map[uint16]uint64, error) {
	e.scrapes.Add(1)
	answered, err := e.request()
	if err != nil {
		e.failed.Add(1)
		return nil, err
	}
	timer := time.NewTimer(answerTimeout)
	defer timer.Stop()
	select {
	case <-answered:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.cached, nil
	case <-timer.C:
		e.failed.Add(1)
		return nil, errTimeout
	}
}

// request requests new samples unless the last ones are still used, or an answer is
// outstanding, for example to a request that was given up. The returned channel is
// closed when there are samples.
func (e *exporter) request() (answered <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answered != nil {
		return e.answered, nil
	}
	done := make(chan struct{})
	if time.Since(e.cachedAt) < cacheTTL {
		close(done)
		return done, nil
	}
	if err := e.send(new(query.Scrape)); err != nil {
		return nil, err
	}
	e.answered, e.parts = done, map[uint16]uint64{}
	return done, nil
}

// add adds a part of the answer.
func (e *exporter) add(part *query.Samples) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answered == nil {
		return errors.New("the dispatcher sent samples that were not requested")
	}
	for _, s := range part.Cells {
		e.parts[s.Cell] = s.N
	}
	if part.Last {
		e.cached, e.cachedAt = e.parts, time.Now()
		close(e.answered)
		e.answered, e.parts = nil, nil
	}
	return nil
}

// collector converts samples to metrics. It implements prometheus.Collector.
type collector struct {
	table     *table.Table
	samples   func() (map[uint16]uint64, error)
	descs     map[*metric.Family]*prometheus.Desc
	buildInfo *prometheus.Desc
}

func newCollector(t *table.Table, samples func() (map[uint16]uint64, error)) *collector {
	c := &collector{table: t, samples: samples, descs: map[*metric.Family]*prometheus.Desc{},
		buildInfo: prometheus.NewDesc(metric.Prefix+"build_info", "The running release; its value is always 1.", []string{"version", "goversion"}, nil)}
	for _, f := range t.Families {
		c.descs[f] = prometheus.NewDesc(f.Name, f.Help, f.Names(), nil)
	}
	return c
}

// Describe sends the description of each family.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.buildInfo
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect sends one metric for each combination of labels. If a family is a
// histogram or has more than maxDenseCells cells, Collect omits the
// combinations whose value is 0.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	values, err := c.samples()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.buildInfo, err)
		return
	}
	ch <- prometheus.MustNewConstMetric(c.buildInfo, prometheus.GaugeValue, 1, release.Version, runtime.Version())
	for _, f := range c.table.Families {
		sparse := f.Cells() > maxDenseCells
		f.Each(func(first, cells int, labels []string) {
			if m := c.metric(f, first, cells, labels, values, sparse); m != nil {
				ch <- m
			}
		})
	}
}

// In a family with at most maxDenseCells cells, the exporter also sends values
// of 0. Prometheus can then compute a rate from the first event on.
const maxDenseCells = 16

func (c *collector) metric(f *metric.Family, first, cells int, labels []string, values map[uint16]uint64, sparse bool) prometheus.Metric {
	if f.Kind != metric.Histogram {
		n, ok := values[uint16(first)]
		if !ok && sparse {
			return nil
		}
		kind := prometheus.CounterValue
		if f.Kind == metric.Gauge {
			kind = prometheus.GaugeValue
		}
		return prometheus.MustNewConstMetric(c.descs[f], kind, float64(n), labels...)
	}
	var count uint64
	buckets := make(map[float64]uint64, len(metric.Buckets))
	for i, bound := range metric.Buckets {
		count += values[uint16(first+i)]
		buckets[bound.Seconds()] = count
	}
	count += values[uint16(first+cells-2)]
	if count == 0 {
		return nil
	}
	sum := time.Duration(values[uint16(first+cells-1)]) * time.Microsecond
	return prometheus.MustNewConstHistogram(c.descs[f], count, sum.Seconds(), buckets, labels...)
}
