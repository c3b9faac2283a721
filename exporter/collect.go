package exporter

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"schedrestd/ipc/query"
	"schedrestd/metric"
	"schedrestd/metric/exposition"
	"schedrestd/metric/table"
	"schedrestd/release"
)

const (
	// answerLimit is how long the dispatcher may take to send all samples.
	answerLimit = 5 * time.Second

	// fresh is how long samples are used again: several servers may scrape, and a
	// client that scrapes without end must not keep the dispatcher busy.
	fresh = 100 * time.Millisecond

	// mostScrapes is how many are answered at a time.
	mostScrapes = 4
)

// handler returns the handler of scrapes.
func (e *exporter) handler() http.Handler {
	p := newPage(table.New())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		select {
		case e.places <- struct{}{}:
			defer func() { <-e.places }()
		default:
			http.Error(w, "too many scrapes at a time; try again later", http.StatusServiceUnavailable)
			return
		}
		values, err := e.samples()
		if err != nil {
			slog.Warn("scrape failed", "error", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if err := p.send(w, r, values); err != nil {
			slog.Debug("scrape not answered", "error", err)
		}
	})
	return mux
}

var errLate = errors.New("the dispatcher did not send its samples in time")

// samples asks the dispatcher for its samples.
func (e *exporter) samples() (map[uint16]uint64, error) {
	e.asking.Lock()
	defer e.asking.Unlock()
	e.scrapes.Add(1)
	if time.Since(e.at) < fresh {
		return e.last, nil
	}
	if err := e.send(new(query.Scrape)); err != nil {
		e.failed.Add(1)
		return nil, err
	}
	values := map[uint16]uint64{}
	late := time.NewTimer(answerLimit)
	defer late.Stop()
	for {
		select {
		case m := <-e.parts:
			for _, s := range m.Cells {
				values[s.Cell] = s.N
			}
			if m.Last {
				e.last, e.at = values, time.Now()
				return values, nil
			}
		case <-late.C:
			e.failed.Add(1)
			return nil, errLate
		}
	}
}

// page writes samples as metrics.
type page struct{ families []family }

// family is a metric with the order of its labels by name.
type family struct {
	*metric.Family
	names []string
	order []int
}

// newPage returns the page of all metrics.
func newPage(t *table.Table) *page {
	p := new(page)
	for _, f := range t.Families {
		names := f.Names()
		order := make([]int, len(names))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(names[a], names[b]) })
		p.families = append(p.families, family{f, names, order})
	}
	return p
}

// send answers a scrape, compressed if the client accepts that.
func (p *page) send(w http.ResponseWriter, r *http.Request, values map[uint16]uint64) error {
	h := w.Header()
	h.Set("Content-Type", exposition.Media)
	h.Set("Vary", "Accept-Encoding")
	if !acceptsGzip(r.Header) {
		return p.write(w, values)
	}
	h.Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	if err := p.write(z, values); err != nil {
		return err
	}
	return z.Close()
}

// acceptsGzip reports whether a client accepts gzip. One that names it with a weight of
// 0 does not.
func acceptsGzip(h http.Header) bool {
	for element := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, weight, weighted := strings.Cut(element, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			return !weighted || strings.Trim(strings.TrimSpace(weight), "qQ=0. ") != ""
		}
	}
	return false
}

// write writes the metrics. Of a family with more than a few combinations of labels,
// those that are 0 are left out.
func (p *page) write(to io.Writer, values map[uint16]uint64) error {
	w := exposition.NewWriter(to)
	const build = metric.Prefix + "build_info"
	w.Family(build, exposition.Gauge, "The running release; its value is always 1.")
	w.Sample(build, 1, "goversion", runtime.Version(), "version", release.Version)
	for _, f := range p.families {
		f.write(w, values)
	}
	return w.Flush()
}

// mostZeros is the number of cells up to which a family is sent completely, so that
// rates exist from the first event on.
const mostZeros = 16

// write writes a family, unless it has no sample.
func (f family) write(w *exposition.Writer, values map[uint16]uint64) {
	sparse, begun := f.Cells() > mostZeros, false
	begin := func() {
		if !begun {
			w.Family(f.Name, [...]exposition.Kind{metric.Counter: exposition.Counter, metric.Gauge: exposition.Gauge, metric.Histogram: exposition.Histogram}[f.Kind], f.Help)
		}
		begun = true
	}
	f.Each(func(first, cells int, of []string) {
		labels := make([]string, 0, 2*len(of)+2)
		for _, i := range f.order {
			labels = append(labels, f.names[i], of[i])
		}
		if f.Kind == metric.Histogram {
			f.writeHistogram(w, begin, first, cells, labels, values)
			return
		}
		if n, ok := values[uint16(first)]; ok || !sparse {
			begin()
			w.Sample(f.Name, float64(n), labels...)
		}
	})
}

// writeHistogram writes a histogram, unless it is empty.
func (f family) writeHistogram(w *exposition.Writer, begin func(), first, cells int, labels []string, values map[uint16]uint64) {
	var total uint64
	for i := range cells - 1 {
		total += values[uint16(first+i)]
	}
	if total == 0 {
		return
	}
	begin()
	var count uint64
	for i, bound := range metric.Buckets {
		count += values[uint16(first+i)]
		w.Sample(f.Name+"_bucket", float64(count), append(labels, "le", strconv.FormatFloat(bound.Seconds(), 'g', -1, 64))...)
	}
	w.Sample(f.Name+"_bucket", float64(total), append(labels, "le", "+Inf")...)
	sum := time.Duration(values[uint16(first+cells-1)]) * time.Microsecond
	w.Sample(f.Name+"_sum", sum.Seconds(), labels...)
	w.Sample(f.Name+"_count", float64(total), labels...)
}
