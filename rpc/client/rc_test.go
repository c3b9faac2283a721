package client

import (
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// TestReturnCodes checks that a return code is a valid answer only to a request
// that asks for nothing else. Otherwise a database that has given up would look
// like a daemon that found nothing.
func TestReturnCodes(t *testing.T) {
	c := newCaller(Config{}, "accounting daemon", nil)
	s := &session{caller: &c, version: codec.V2411}
	for _, tt := range []struct {
		name  string
		code  uint32
		want  message.Type
		stage stage
		kind  errs.Kind
	}{
		{"success", 0, message.AccountingRC, 0, 0},
		{"an error", 2000, message.AccountingRC, stageAnswered, 0},
		{"success instead of the names", 0, message.AccountingGotList, stageAnswered, errs.Unavailable},
		{"success instead of accounts", 0, message.AccountingGotAccounts, stageDecode, 0},
		{"success instead of statistics", 0, message.AccountingGotStats, stageDecode, 0},
	} {
		b, err := message.EncodePersistent(s.version, message.AccountingRC, &message.PersistRC{Code: tt.code})
		if err != nil {
			t.Fatal(err)
		}
		const head = 4 + 2 // its length and its type
		f := s.checkRC(&reply{version: s.version, kind: message.AccountingRC, first: b[head:]}, tt.want)
		switch {
		case tt.stage == 0 && f != nil:
			t.Errorf("%s: %v", tt.name, f.err)
		case tt.stage != 0 && (f == nil || f.stage != tt.stage || tt.kind != 0 && errs.KindOf(f.err) != tt.kind):
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}
