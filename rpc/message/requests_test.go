package message

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/rpc/codec"
)

// requestBodies maps the message type of each captured request to a function
// that creates a body of that type.
var requestBodies = map[string]func() Body{
	"1008": func() Body { return Empty{} },
	"1021": func() Body { return new(LicenseInfoRequest) },
	"1409": func() Body { return new(GetAccounts) },
	"1410": func() Body { return new(GetAssociations) },
	"1412": func() Body { return new(GetClusters) },
	"1415": func() Body { return new(GetUsers) },
	"1444": func() Body { return new(GetAccountingJobs) },
	"1448": func() Body { return new(GetQOS) },
	"1486": func() Body { return new(GetTRES) },
	"1489": func() Body { return Empty{} },
	"2003": func() Body { return new(JobInfoRequest) },
	"2007": func() Body { return new(NodeInfoRequest) },
	"2009": func() Body { return new(PartitionInfoRequest) },
	"2021": func() Body { return new(JobInfoSingleRequest) },
	"2022": func() Body { return new(SharesRequest) },
	"2024": func() Body { return new(ReservationInfoRequest) },
	"2035": func() Body { return new(StatsRequest) },
	"2040": func() Body { return new(NodeInfoSingleRequest) },
	"6500": func() Body { return new(PersistInit) },
}

// TestCapturedRequests decodes requests that real daemons have accepted.
// Encoding the results must return the same bytes.
func TestCapturedRequests(t *testing.T) {
	files, err := filepath.Glob("testdata/frames/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, file := range files {
		for name, request := range readRequests(t, file) {
			number := request.Type.String()
			seen[number]++
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz")+"/"+name, func(t *testing.T) {
				make, known := requestBodies[number]
				if !known {
					t.Fatalf("request %s is not known", number)
				}
				body, raw, v := make(), unhex(t, request.Body), protocolOf(t, file)
				if err := DecodeBody(v, 0, raw, body); err != nil {
					t.Fatal(err)
				}
				c := codec.NewEncoder(v, nil)
				body.Walk(c)
				if v < codec.V2411 || number != "1409" && number != "1415" {
					compareBytes(t, raw, c.Bytes())
					return
				}
				// In the captured request, the filter for associations is null.
				// This project encodes a filter that selects everything
				// instead.
				again := make()
				if err := DecodeBody(v, 0, c.Bytes(), again); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(body, again); diff != "" {
					t.Errorf("captured -, ours +:\n%s", diff)
				}
			})
		}
	}
	for number := range requestBodies {
		if seen[number] < 8 {
			t.Errorf("%d captured requests of type %s, want at least one for each protocol", seen[number], number)
		}
	}
}

type capturedRequest struct {
	Type json.Number `json:"request_type"`
	Body string      `json:"request_body"` // in hex, without header and credential
}

func readRequests(t *testing.T, file string) map[string]capturedRequest {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]capturedRequest{}
	if err := json.NewDecoder(z).Decode(&requests); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return requests
}
