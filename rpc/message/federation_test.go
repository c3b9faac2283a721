package message

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// siblings are the fields of a federation's job. A cluster's bit is 1<<(id-1).
type siblings struct {
	Job              uint32
	Origin           string
	Active, Viable   string
	ActiveBits, Bits uint64
}

// TestFederation decodes answers of real controllers in a federation of two
// clusters, lab (id 1) and lab2 (id 2). The numbers of its jobs begin with the id
// of their cluster of origin. Encoding must produce the same bytes.
func TestFederation(t *testing.T) {
	text, err := os.ReadFile("testdata/federation.tsv")
	if err != nil {
		t.Fatal(err)
	}
	job := func(n uint32, active string, bits uint64) siblings {
		return siblings{1<<26 | n, "lab", active, "lab,lab2", bits, 3}
	}
	want := map[string]siblings{
		"24.11 origin": job(10008, "lab2", 2), "24.11 runs here": job(10008, "lab2", 2), "24.11 waits here": job(10009, "", 0),
		"26.05 origin": job(10007, "lab,lab2", 3), "26.05 runs here": job(10006, "lab2", 2), "26.05 waits here": job(10007, "", 0),
	}
	rows := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(rows) != 8 {
		t.Fatalf("%d answers", len(rows))
	}
	for _, row := range rows {
		column := strings.Split(row, "\t")
		t.Run(column[0]+" "+column[1], func(t *testing.T) {
			frame, err := ParseFrame(unhex(t, column[2])[4:])
			if err != nil {
				t.Fatal(err)
			}
			check := func(body Body) {
				t.Helper()
				if err := frame.Decode(body); err != nil {
					t.Fatal(err)
				}
				again := codec.NewEncoder(frame.Header.Version, nil)
				body.Walk(again)
				if !bytes.Equal(again.Bytes(), frame.Body) {
					t.Errorf("encoded again:\n%x\n%x", again.Bytes(), frame.Body)
				}
			}
			if frame.Header.Type == ResponseReroute {
				var r Reroute
				check(&r)
				if r.Cluster == nil || r.Cluster.Name != "lab" {
					t.Errorf("%+v", r)
				}
				return
			}
			var info JobInfo
			check(&info)
			if len(info.Jobs.List) != 1 {
				t.Fatalf("%d jobs", len(info.Jobs.List))
			}
			if diff := cmp.Diff(want[column[0]+" "+column[1]], siblingsOf(&info.Jobs.List[0])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func siblingsOf(j *model.Job) siblings {
	return siblings{j.StepID.JobID, j.FedOrigin, j.FedSiblingsActiveText, j.FedSiblingsViableText, j.FedSiblingsActive, j.FedSiblingsViable}
}
