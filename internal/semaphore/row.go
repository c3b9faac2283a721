package semaphore

import (
	"math"
	"sync/atomic"
	"time"
)

// A Row describes a limit on something that several keys share. All rows of this
// program are in the table of package limit.
type Row struct {
	Name    string // what the places are, in the plural
	Process string // each process of this kind has these places
	Key     string // what a key is, in the singular
	Setting string // the setting that determines Total; "" if Total is fixed

	Total int // number of places

	// Share is the number of places that one key can hold. If a row Lends, a key
	// can hold more, even every place, as long as all waiting callers have the
	// same key. While a caller with another key, or without a key, waits, the key
	// gets no place beyond its share. 0: each key can hold all places.
	Share int
	Lends bool

	// Displaces means that if all places are taken, a key gets one of the key with
	// the most, instead of waiting, if the other key has at least Lead places more.
	// If Lead is 0, a key that holds its share gets one of its own.
	Displaces bool
	Lead      int

	Hold    time.Duration // a place that is held for longer is released; 0: none is
	Parts   int           // Of gives a key one of so many parts; 0: all
	Wait    time.Duration // no caller waits longer; Forever: until its context ends
	Refused string        // what happens to a caller that gets no place
	Shared  string        // if there are no turns: why one caller may take all places
	Metric  string        // the metric that shows the places that are held; "" for none
	Counts  *Counts       // what to count for the metrics; nil: nothing
}

// Counts counts the callers of all semaphores of a row.
type Counts struct {
	Label   string        // the name of the row in metrics
	Waited  atomic.Uint64 // callers that had to wait
	Refused atomic.Uint64 // those of them that got no place
}

// Forever is a time limit for callers whose contexts end each wait.
const Forever = time.Duration(math.MaxInt64)

// Of returns the row with another number of places.
func (r Row) Of(total int) Row {
	r.Total = total
	return r.WithShare(max(1, total/max(1, r.Parts)))
}

// WithShare returns the row with another share for each key.
func (r Row) WithShare(share int) Row {
	r.Share = share
	return r
}
