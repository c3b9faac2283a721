package message

import (
	"errors"
	"testing"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// TestLoopTruncated checks that decoding a truncated message stores only the
// complete records.
func TestLoopTruncated(t *testing.T) {
	jobErrors := &JobArrayErrors{Errors: []JobArrayError{{Code: 1, JobIDs: "12_1", Message: "one"}, {Code: 2, JobIDs: "12_2", Message: "two"}}}
	stats := &AccountingStats{}
	stats.Rollup.Periods = []model.RollupPeriod{{Count: 1, TimeMax: 2}, {Count: 3, TimeMax: 4}}
	for name, test := range map[string]struct {
		full, empty Body
		cut         int // bytes of the end that are missing
		records     func(Body) int
	}{
		"job array errors": {jobErrors, new(JobArrayErrors), 2, func(b Body) int { return len(b.(*JobArrayErrors).Errors) }},
		"roll-ups":         {statsRollup{stats}, statsRollup{new(AccountingStats)}, 2, func(b Body) int { return len(b.(statsRollup).Rollup.Periods) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := codec.NewEncoder(codec.Newest, nil)
			test.full.Walk(c)
			b := c.Bytes()
			err := DecodeBody(codec.Newest, 1, b[:len(b)-test.cut], test.empty)
			if got := test.records(test.empty); !errors.Is(err, codec.ErrShort) || got != 1 {
				t.Errorf("%d records, %v", got, err)
			}
		})
	}
}

// statsRollup is a message that consists only of the roll-up of
// AccountingStats.
type statsRollup struct{ *AccountingStats }

func (s statsRollup) Walk(c *codec.Codec) { rollup(c, &s.Rollup) }
