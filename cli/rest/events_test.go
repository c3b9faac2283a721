package rest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"schedrestd/internal/errs"
)

// TestReadEvents checks the format of a stream of events.
func TestReadEvents(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, stream string
		want         []string // name, id and data of each event
		lines        int
		wantErr      error
	}{
		{"events", "event: a\nid: 1\ndata: x\n\nevent: b\ndata: y\n\n", []string{"a 1 x", "b  y"}, 7, io.ErrUnexpectedEOF},
		{"line ends of two bytes", "event: a\r\ndata: x\r\n\r\n", []string{"a  x"}, 3, io.ErrUnexpectedEOF},
		{"comments and unknown fields", ": hello\n:\nretry: 2000\n\nevent: a\ndata:x\nwhat\n\n", []string{"a  x"}, 8, io.ErrUnexpectedEOF},
		{"several lines of data", "data: x\ndata:  y\n\n", []string{"  x\n y"}, 3, io.ErrUnexpectedEOF},
		{"without data", "event: a\nid: 1\n\ndata: x\n\n", []string{"  x"}, 5, io.ErrUnexpectedEOF},
		{"the last event", "event: end\ndata: {}\n\ndata: x\n\n", []string{"end  {}"}, 3, io.EOF},
		{"cut off", "event: a\ndata: x\n", nil, 2, io.ErrUnexpectedEOF},
		{"cut off in a line", "event: a\ndata: x", nil, 1, io.ErrUnexpectedEOF},
		{"a long line", "data: " + long + "\n\ndata: y\n\n", []string{"  " + long, "  y"}, 4, io.ErrUnexpectedEOF},
		{"too long a line", "data: " + strings.Repeat("x", maxValue) + "\n\n", nil, 0, errTooLong},
		{"too many lines", strings.Repeat("data: "+long+"\n", maxValue/len(long)+2), nil, maxValue / len(long), errTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			lines := 0
			err := readEvents(iotest.HalfReader(strings.NewReader(tt.stream)), func() { lines++ }, func(e *event) error {
				got = append(got, fmt.Sprintf("%s %s %s", e.name, e.id, e.data))
				if e.name == "end" {
					return io.EOF
				}
				return nil
			})
			if err != tt.wantErr || lines != tt.lines || !slices.Equal(got, tt.want) {
				t.Errorf("%d events, %d lines, %v; want %d, %d, %v", len(got), lines, err, len(tt.want), tt.lines, tt.wantErr)
			}
		})
	}
}

// TestFollow checks what a follower gets from a stream, that it continues where
// the last stream has ended, and which failures it reports.
func TestFollow(t *testing.T) {
	saved := maxIdle
	defer func() { maxIdle = saved }()
	events := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			fmt.Fprint(w, text)
		}
	}
	silent := func(w http.ResponseWriter, r *http.Request) {
		events("retry: 1\n\n")(w, r)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	const end = "event: end\ndata: {\"reason\":\"the gateway stops\"}\n\n"
	var sent []string
	answer := http.HandlerFunc(nil)
	c := dialTest(t, apiHandler(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, fmt.Sprint(r.URL.RawQuery, " ", r.Header["Accept"], " ", r.Header.Get("Last-Event-ID")))
		answer(w, r)
	}, "/slurm/v0.0.44/"))
	var got []string
	f := &JobFollower{
		List: &List{Fields: []string{"job_id"}, Since: 7, Wait: true},
		Job:  func(j *Job) { got = append(got, fmt.Sprint(j.ID, " ", j.State)) },
		Gone: func(id uint32) { got = append(got, fmt.Sprint("gone ", id)) },
		Listed: func(ids map[uint32]bool) {
			got = append(got, fmt.Sprint("listed ", ids))
		},
	}
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   []string
		lastID string // after the stream
		kind   errs.Kind
		text   string // of the error; "" for none
	}{
		{"a list in pieces and changes", events("event: snapshot\ndata: {\"jobs\":[{\"job_id\":1,\"job_state\":[\"A\"]}],\"more\":true}\n\n" +
			"event: snapshot\nid: a\ndata: {\"jobs\":[{\"job_id\":2}],\"more\":false}\n\nevent: changed\ndata: {\"job_id\":1,\"job_state\":[\"B\"]}\n\n" +
			"event: added\ndata: {\"job_id\":3}\n\nevent: removed\nid: b\ndata: {\"job_id\":2}\n\nevent: later\ndata: {}\n\n" + end),
			[]string{"1 [A]", "2 []", "listed map[1:true 2:true]", "1 [B]", "3 []", "gone 2"}, "b", 0, ""},
		{"part of a list", events("event: snapshot\ndata: {\"jobs\":[{\"job_id\":8}],\"more\":true}\n\n"), []string{"8 []"}, "b", errs.BadAnswer, "unexpected EOF"},
		{"the whole list again", events("event: reset\ndata: {}\n\nevent: snapshot\nid: c\ndata: {\"jobs\":[],\"more\":false}\n\n" + end), []string{"listed map[]"}, "c", 0, ""},
		{"malformed", events("event: changed\nid: d\ndata: {\n\n"), nil, "c", errs.BadAnswer, "read the events of the gateway"},
		{"silent", silent, nil, "c", errs.Timeout, "has sent nothing"},
		{"a list", reply(200, `{"jobs": []}`), nil, "c", 0, ErrNoEvents.Error()},
		{"refused", reply(406, `{}`), nil, "c", 0, ErrNoEvents.Error()},
		{"busy", reply(429, `{}`), nil, "c", errs.TooMany, "429"},
		{"denied", reply(401, `{"errors": [{"description": "the token has expired"}]}`), nil, "c", errs.Unauthenticated, "the token has expired"},
	} {
		sent, got, answer = nil, nil, tt.answer
		if maxIdle = saved; tt.name == "silent" {
			maxIdle = 100 * time.Millisecond
		}
		before := f.lastID
		err := f.Follow(t.Context(), c)
		if !slices.Equal(got, tt.want) || f.lastID != tt.lastID || (err == nil) != (tt.text == "") || err != nil && (!strings.Contains(err.Error(), tt.text) || errs.KindOf(err) != tt.kind) {
			t.Errorf("%s: %q, last id %q, %v (kind %v)", tt.name, got, f.lastID, err, errs.KindOf(err))
		}
		if want := "fields=job_id [text/event-stream] " + before; len(sent) != 1 || sent[0] != want {
			t.Errorf("%s: sent %q, want %q", tt.name, sent, want)
		}
	}
}
