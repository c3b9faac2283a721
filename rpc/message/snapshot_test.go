package message

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// unasked lists the answers of the snapshot to requests that this project does
// not send.
var unasked = map[string]string{"2050": "the federation of a cluster"}

// TestSnapshot decodes the answers that the daemons of a development snapshot of
// Slurm 26.11 sent at protocol 46. No byte may be left over. Encoding the result
// must produce the same bytes.
func TestSnapshot(t *testing.T) {
	v := codec.V2611
	answers := map[string]func() Body{
		"1508": func() Body { return new(AccountingConf) },
		"2002": func() Body { return &BuildInfo{Config: new(model.Configuration)} },
		"2058": func() Body { return new(JobStates) },
		"3007": func() Body { return new(ReservationName) },
		"4004": func() Body { return new(SubmitResponse) },
		"1454": func() Body { return new(WCKeys) },
		"1504": func() Body { return new(Instances) },
	}
	seen := map[string]bool{}
	for i, captured := range snapshot(t) {
		number := captured.ResponseType.String()
		seen[number] = true
		t.Run(fmt.Sprintf("%d %s", i, number), func(t *testing.T) {
			make := answers[number]
			if make == nil {
				make = bodies[number]
			}
			if make == nil {
				if unasked[number] == "" {
					t.Fatal("not known")
				}
				return
			}
			raw := unhex(t, captured.Frame)
			if got := int(binary.BigEndian.Uint32(raw)); got != len(raw)-4 {
				t.Fatalf("length in front is %d, message has %d bytes", got, len(raw)-4)
			}
			body, want := make(), raw[6:]
			if captured.Daemon == "slurmctld" {
				frame, err := ParseFrame(raw[4:])
				if err != nil || frame.Header.Version != v || strconv.Itoa(int(frame.Header.Type)) != number {
					t.Fatalf("header %+v, %v", frame.Header, err)
				}
				want = frame.Body
			} else if got := strconv.Itoa(int(binary.BigEndian.Uint16(raw[4:]))); got != number {
				t.Fatalf("message %s", got)
			}
			in := codec.NewDecoder(v, want)
			body.Walk(in)
			if err := in.Finish(); err != nil {
				t.Fatal(err)
			}
			if number == "2002" { // a few of its fields are never kept, so they are encoded empty
				return
			}
			out := codec.NewEncoder(v, nil)
			body.Walk(out)
			if err := out.Finish(); err != nil {
				t.Fatal(err)
			}
			compareBytes(t, want, out.Bytes())
		})
	}
	for number := range answers {
		if !seen[number] {
			t.Errorf("no answer of type %s", number)
		}
	}
	if len(seen) < 20 {
		t.Errorf("answers of %d types", len(seen))
	}
}

// snapshot returns the answers of the snapshot's daemons.
func snapshot(t *testing.T) (list []struct {
	Daemon       string
	ResponseType json.Number `json:"response_type"`
	Frame        string      `json:"response_frame"`
}) {
	t.Helper()
	f, err := os.Open("testdata/snapshot/p46.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSegmentSize checks how a job's segment size is encoded. From protocol 46
// on, the controller takes 0 for a size. Before, it takes 0 for "not set".
func TestSegmentSize(t *testing.T) {
	for v := codec.V2405; v <= codec.Newest; v++ {
		for _, tt := range []struct {
			size model.Opt[uint16]
			want uint16
		}{{model.Opt[uint16]{}, 0xfffe}, {model.Some[uint16](0), 0}, {model.Some[uint16](4), 4}} {
			out := codec.NewEncoder(v, nil)
			jobDesc(out, &model.JobDesc{SegmentSize: tt.size})
			b := out.Bytes()
			if got := binary.BigEndian.Uint16(b[len(b)-2:]); got != tt.want || out.Finish() != nil {
				t.Errorf("protocol %d: %+v is %#x, want %#x", v, tt.size, got, tt.want)
			}
		}
	}
	c := codec.NewDescriber(codec.Newest)
	jobDesc(c, new(model.JobDesc))
	if rows := c.Rows(); !strings.HasPrefix(rows[len(rows)-1].Field, "segment_size") {
		t.Errorf("the last field is %s", rows[len(rows)-1].Field)
	}
}
