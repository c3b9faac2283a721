package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Follower follows a list, applies the events, and checks that each fits what it
// knows. It comes back whenever the stream breaks.
type Follower struct {
	Client *http.Client // must have no time limit
	URL    string       // of the list, with the query
	Token  string
	List   string // name of the list in the answer
	Key    string // name of the field that identifies a record

	Forbidden func(record map[string]any) bool // whether a record must never be sent; nil for none

	mu       sync.Mutex // guards the fields below
	records  map[string]string
	faults   []string
	resumed  int // streams that went on without a snapshot
	resets   int
	ends     map[string]int // reasons of end events
	leave    context.CancelFunc
	lastID   string
	snapshot bool // the last snapshot is complete
}

// Run follows the list until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	for ctx.Err() == nil {
		connected, cancel := context.WithCancel(ctx)
		f.mu.Lock()
		f.leave = cancel
		f.mu.Unlock()
		if err := f.follow(connected); err != nil && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
	}
}

// follow follows the list over one connection.
func (f *Follower) follow(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-SCHED-USER-TOKEN", f.Token)
	r.Header.Set("Accept", "text/event-stream")
	f.mu.Lock()
	id := f.lastID
	f.mu.Unlock()
	if id != "" {
		r.Header.Set("Last-Event-ID", id)
	}
	answer, err := f.Client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode < 500 {
			f.fault("status %d: %s", answer.StatusCode, text)
		}
		return errors.New(answer.Status)
	}
	lines := bufio.NewReader(answer.Body)
	fields, first := map[string]string{}, id != ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if line != "\n" {
			fields[name] = value
			continue
		}
		if fields["event"] != "" {
			f.apply(fields["event"], fields["data"], fields["id"], first)
			first = false
		}
		clear(fields)
	}
}

// apply applies an event. The argument first says that it is the first one after
// the client has come back with an id.
func (f *Follower) apply(event, data, id string, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first && event != "reset" && event != "end" {
		f.resumed++
	}
	if id != "" {
		f.lastID = id
	}
	switch event {
	case "snapshot":
		l, err := f.parse([]byte(data))
		if err != nil {
			f.faults = append(f.faults, err.Error())
		}
		if f.snapshot || f.records == nil {
			f.records = map[string]string{}
		}
		for _, record := range l.records {
			f.checkLocked(record)
			f.records[f.key(record)] = fmt.Sprint(record)
		}
		f.snapshot = !l.more
		return
	case "reset":
		f.resets++
		f.snapshot = true // the next snapshot replaces what is known
		return
	case "late":
		return
	case "end":
		if f.ends == nil {
			f.ends = map[string]int{}
		}
		f.ends[data]++
		return
	}
	var record map[string]any
	if err := json.Unmarshal([]byte(data), &record); err != nil {
		f.faults = append(f.faults, err.Error())
		return
	}
	f.checkLocked(record)
	key := f.key(record)
	old, known := f.records[key]
	switch {
	case known == (event == "added"), event == "changed" && old == fmt.Sprint(record):
		f.faults = append(f.faults, fmt.Sprintf("%s %v, but the client has %q", event, record, old))
	case event == "removed":
		delete(f.records, key)
	default:
		f.records[key] = fmt.Sprint(record)
	}
}

// followed is a list in an answer or a snapshot.
type followed struct {
	records []map[string]any
	more    bool
}

func (f *Follower) parse(text []byte) (l followed, err error) {
	var parts map[string]json.RawMessage
	if err = json.Unmarshal(text, &parts); err != nil {
		return l, err
	}
	if err = json.Unmarshal(parts[f.List], &l.records); err == nil && parts["more"] != nil {
		err = json.Unmarshal(parts["more"], &l.more)
	}
	return l, err
}

func (f *Follower) key(record map[string]any) string { return fmt.Sprint(record[f.Key]) }

// checkLocked records a fault if a record is forbidden.
func (f *Follower) checkLocked(record map[string]any) {
	if f.Forbidden != nil && f.Forbidden(record) {
		f.faults = append(f.faults, fmt.Sprint("a record that the client must not see: ", record))
	}
}

// Leave breaks the stream.
func (f *Follower) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leave != nil {
		f.leave()
	}
}

// Followed is what a Follower has seen.
type Followed struct {
	Records map[string]string // what it knows, as text, by key
	Faults  []string
	Resumed int            // streams that went on without a snapshot
	Resets  int            // streams that began again
	Ends    map[string]int // reasons of end events
}

// Seen returns what the Follower has seen so far.
func (f *Follower) Seen() Followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Followed{maps.Clone(f.records), slices.Clone(f.faults), f.resumed, f.resets, maps.Clone(f.ends)}
}

func (f *Follower) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// Missing compares what the client knows with the list as it is now. It returns
// "" if they are the same.
func (f *Follower) Missing() string {
	r, err := http.NewRequest(http.MethodGet, f.URL, nil)
	if err != nil {
		return err.Error()
	}
	r.Header.Set("X-SCHED-USER-TOKEN", f.Token)
	answer, err := f.Client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Sprint(answer.Status, " ", err)
	}
	l, err := f.parse(text)
	if err != nil {
		return err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, record := range l.records {
		if got := f.records[f.key(record)]; got != fmt.Sprint(record) {
			return fmt.Sprintf("the client has %q instead of %v", got, record)
		}
	}
	if len(f.records) != len(l.records) {
		return fmt.Sprintf("the client has %d records instead of %d", len(f.records), len(l.records))
	}
	return ""
}
