package message

import (
	"os"
	"strings"
	"testing"
)

// TestBuildInfo decodes the answers of real controllers. No byte may be left
// over.
func TestBuildInfo(t *testing.T) {
	text, err := os.ReadFile("testdata/buildinfo.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	if len(rows) < 8 {
		t.Fatalf("%d answers", len(rows))
	}
	for _, row := range rows {
		column := strings.Split(row, "\t")
		t.Run(column[1]+" at "+column[0], func(t *testing.T) {
			frame, err := ParseFrame(unhex(t, column[3])[4:])
			if err != nil {
				t.Fatal(err)
			}
			var info BuildInfo
			if err := frame.Decode(&info); err != nil {
				t.Fatal(err)
			}
			if info.Version != column[1] || info.ClusterName != column[2] || info.BootTime == 0 {
				t.Errorf("got %+v", info)
			}
		})
	}
}
