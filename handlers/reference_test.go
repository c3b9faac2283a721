package handlers

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// TestReference answers requests with frames that were captured from real
// controllers. The answers of slurmrestd were captured at the same time. The
// gateway's answers must have the same fields, types and values.
func TestReference(t *testing.T) {
	for _, tt := range []struct{ suite, frames string }{{"trixie", "trixie-p42"}, {"forky", "forky-p45"}} {
		f := captured(t, "../rpc/message/testdata/frames/"+tt.frames+".json.gz")
		var answers map[string]json.RawMessage
		readGzip(t, "testdata/reference/"+tt.suite+".json.gz", &answers)
		if len(answers) < 10 {
			t.Fatalf("%d answers in the capture", len(answers))
		}
		for path, answer := range answers {
			t.Run(tt.suite+path, func(t *testing.T) {
				var want map[string]any
				unmarshal(t, answer, &want)
				f.copyVolatile(t, answer)
				w := serve(t, config(f), request(http.MethodGet, path, ""))
				if w.Code != http.StatusOK {
					t.Fatalf("status %d: %s", w.Code, w.Body)
				}
				var got map[string]any
				unmarshal(t, w.Body.Bytes(), &got)
				delete(want, "meta") // differs each time
				delete(got, "meta")
				except(t, tt.suite, path, want)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("theirs (-), ours (+):\n%s", d)
				}
			})
		}
	}
}

// captured returns a controller whose answers come from captured frames.
func captured(t *testing.T, file string) *fake {
	var captures map[string]struct {
		Frame string `json:"response_frame"`
	}
	readGzip(t, file, &captures)
	decode := func(name string, body message.Body) {
		raw, err := hex.DecodeString(captures[name].Frame)
		if err != nil || len(raw) < 4 {
			t.Fatalf("%s: %v", name, err)
		}
		frame, err := message.ParseFrame(raw[4:])
		if err != nil {
			t.Fatal(err)
		}
		if err := frame.Decode(body); err != nil {
			t.Fatal(err)
		}
	}
	var nodes message.NodeInfo
	var jobs message.JobInfo
	var partitions message.PartitionInfo
	decode("nodes", &nodes)
	decode("jobs", &jobs)
	decode("partitions", &partitions)
	var reservations message.ReservationInfo
	var licenses message.LicenseInfo
	decode("reservations", &reservations)
	decode("licenses", &licenses)
	var shares message.Shares
	decode("shares", &shares)
	var stats message.ControllerStats
	decode("stats", &stats)
	return &fake{
		nodes: nodes.Nodes.List, jobs: jobs.Jobs.List, partitions: partitions.Partitions.List,
		reservations: reservations.Reservations.List, licenses: licenses.Licenses.List,
		shares: shares.Shares.List, tresNames: shares.TRESNames, totalShares: shares.TotalShares,
		counts:     stats.ControllerStats,
		lastUpdate: jobs.LastUpdate, backfill: jobs.LastBackfill,
	}
}

// copyVolatile copies to f the values in slurmrestd's answer that differ in
// every request. These are the results of pings, the time of the last change,
// and the numbers and durations of requests.
func (f *fake) copyVolatile(t *testing.T, answer json.RawMessage) {
	var body struct {
		Pings []struct {
			Hostname string
			Latency  int64
			Mode     string
		}
		LastUpdate struct{ Number model.Time } `json:"last_update"`
		Statistics struct {
			Types []struct {
				ID    uint16 `json:"type_id"`
				Count uint32
				Time  uint64 `json:"total_time"`
			} `json:"rpcs_by_message_type"`
			Users []struct {
				ID    uint32 `json:"user_id"`
				Count uint32
				Time  uint64 `json:"total_time"`
			} `json:"rpcs_by_user"`
		}
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		t.Fatal(err)
	}
	f.lastUpdate = body.LastUpdate.Number
	f.counts.RPCTypes, f.counts.RPCUsers = nil, nil
	for _, r := range body.Statistics.Types {
		f.counts.RPCTypes = append(f.counts.RPCTypes, model.RPCTypeStats{Type: r.ID, Count: r.Count, Time: r.Time})
	}
	for _, r := range body.Statistics.Users {
		f.counts.RPCUsers = append(f.counts.RPCUsers, model.RPCUserStats{UserID: r.ID, Count: r.Count, Time: r.Time})
	}
	f.pings = nil
	for i, p := range body.Pings {
		f.pings = append(f.pings, model.Ping{Hostname: p.Hostname, Latency: p.Latency, Mode: p.Mode, Responding: true, Primary: i == 0})
	}
}

func readGzip(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	z, err := gzip.NewReader(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// unmarshal decodes JSON. It keeps the text of numbers, so that 2.0 differs
// from 2.
func unmarshal(t *testing.T, b []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
}

func newRequest(method, path, body string) *http.Request {
	r, err := http.NewRequest(method, "http://gateway"+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	return r
}
