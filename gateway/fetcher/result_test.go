package fetcher

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/conf"
	"schedrestd/internal/errs"
)

// TestResult checks that a result is decoded to what was encoded, and that no
// other text is a result.
func TestResult(t *testing.T) {
	sent := conf.Sent{Origin: "c", Files: map[string]string{"slurm.conf": "1:a,\x00", "b": ""}}
	got, err := decodeResult(EncodeResult(sent, nil))
	if diff := cmp.Diff(sent, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	want := errs.New(errs.NotFound, "a").WithHint("b")
	if _, err := decodeResult(EncodeResult(conf.Sent{}, want)); cmp.Diff(error(want), err) != "" {
		t.Errorf("%v", err)
	}
	for _, raw := range []string{"", "4:sent,", "4:sent,1:c,1:a,", "4:sent,1:c,1:a,1:b", "4:sent,1:c,1:a,2:b,", "+4:sent,1:c,", "4:sent,99999999999999999999:", "6:failed,1:x,1:a,1:b,", "6:failed,1:1,1:a,", "4:send,1:c,"} {
		if got, err := decodeResult([]byte(raw)); err == nil {
			t.Errorf("%q: %v", raw, got)
		}
	}
}

// FuzzResult checks that no result of a captured process causes a panic, and that
// the files in it are not longer than it.
func FuzzResult(f *testing.F) {
	f.Add(EncodeResult(conf.Sent{Origin: "c", Files: map[string]string{"slurm.conf": "x", "b": ""}}, nil))
	f.Add(EncodeResult(conf.Sent{}, errs.New(errs.NotFound, "a\nb").WithHint("c")))
	f.Add([]byte("4:sent,4294967295:"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		sent, err := decodeResult(raw)
		size := len(sent.Origin)
		for name, text := range sent.Files {
			size += len(name) + len(text)
		}
		if size > len(raw) || err == nil && sent.Files[conf.MainFile] == "" {
			t.Errorf("%q: %d bytes, %v", raw, size, err)
		}
	})
}
