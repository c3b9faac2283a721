package ctld

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"schedrestd/bundled/ctld/journal"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// The type picky is an accounting daemon that refuses every batch that contains
// a certain job.
type picky struct {
	refusedID uint32

	mu       sync.Mutex
	received []uint32
}

func (p *picky) Record(_ context.Context, jobs []model.Job) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range jobs {
		if j.StepID.JobID == p.refusedID {
			return errs.New(errs.TooLarge, "the request is too large")
		}
	}
	for _, j := range jobs {
		p.received = append(p.received, j.StepID.JobID)
	}
	return nil
}

// TestRefusedRecordIsSetAside checks that a record that the accounting daemon
// refuses does not delay other records.
func TestRefusedRecordIsSetAside(t *testing.T) {
	p := &picky{refusedID: 7}
	c, stop := controller(t, Config{Accounting: p})
	for id := uint32(1); id <= 20; id++ {
		if err := c.spool.add(model.Job{StepID: model.StepID{JobID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "all but one are recorded", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.received) == 19 })
	await(t, "nothing is left", func() bool { return len(c.spool.batch(1)) == 0 })
	if slices.Contains(p.received, 7) {
		t.Error("the refused record is recorded")
	}
	stop()
	c, _ = controller(t, Config{StateDir: c.cfg.StateDir, Accounting: p})
	if len(c.spool.refused.numbers) != 1 {
		t.Fatalf("%d records are set aside", len(c.spool.refused.numbers))
	}
	if b, err := c.journal.Get(key(asidePrefix, c.spool.refused.numbers[0])); err != nil || !strings.Contains(string(b), "7") {
		t.Errorf("%s, %v", b, err)
	}
}

// idleSpool returns a controller that sends no records, because its method Run
// is not called.
func idleSpool(t *testing.T, log *slog.Logger) *Controller {
	t.Helper()
	c, err := Open(t.Context(), Config{StateDir: filepath.Join(t.TempDir(), "state"), Log: log, Accounting: unavailableAccounting{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestRecordsSetAsideStaySorted sets records aside out of numeric order. It
// checks that the oldest records can still be dropped first.
func TestRecordsSetAsideStaySorted(t *testing.T) {
	c := idleSpool(t, quiet)
	for range 3 {
		if err := c.spool.add(model.Job{UserID: 54321}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []uint64{2, 0, 1} {
		if err := c.spool.setAside(n, errors.New("refused")); err != nil {
			t.Fatal(err)
		}
	}
	if want := []uint64{0, 1, 2}; !slices.Equal(c.spool.refused.numbers, want) {
		t.Errorf("set aside: %v", c.spool.refused.numbers)
	}
	_, size := c.journal.Stat(key(asidePrefix, 0))
	for _, left := range [][]uint64{{2}, {}} {
		c.spool.refused.maxBytes = int64(len(left)) * size
		c.spool.trim(&c.spool.refused)
		if !slices.Equal(c.spool.refused.numbers, left) {
			t.Errorf("left: %v, want %v", c.spool.refused.numbers, left)
		}
	}
}

// TestDamagedRecord checks that the journal charges a damaged record to its
// owner. After a restart, the controller can't determine the owner, so the
// journal must not charge the record to any user. The log must not describe the
// record as one of job 0.
func TestDamagedRecord(t *testing.T) {
	const owner = 54321
	var log bytes.Buffer
	c := idleSpool(t, slog.New(slog.NewTextHandler(&log, nil)))
	if err := c.spool.addWith(model.Job{UserID: owner}, func(e journal.Entry) error {
		e.Value = e.Value[:len(e.Value)-1]
		return c.journal.Commit(e)
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.spool.setAside(0, errors.New("refused")); err != nil {
		t.Fatal(err)
	}
	record := key(asidePrefix, 0)
	if uid, _ := c.journal.Stat(record); uid != owner {
		t.Errorf("set aside as a record of uid %d", uid)
	}
	if text := log.String(); !strings.Contains(text, "damaged") || strings.Contains(text, "job=") {
		t.Errorf("log: %s", text)
	}
	c.Close()
	log.Reset()
	c, err := Open(t.Context(), c.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if uid, size := c.journal.Stat(record); uid != noUser || size == 0 || !slices.Equal(c.spool.refused.numbers, []uint64{0}) {
		t.Errorf("after a restart: a record of uid %d and %d bytes", uid, size)
	}
	if text := log.String(); !strings.Contains(text, "damaged") || !strings.Contains(text, record) {
		t.Errorf("log after a restart: %s", text)
	}
}

func TestBatchIsBoundedInBytes(t *testing.T) {
	// Run is not called, so nothing else sends records.
	c, err := Open(t.Context(), Config{StateDir: filepath.Join(t.TempDir(), "state"), Log: quiet, Accounting: &picky{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	long := model.Job{StepID: model.StepID{JobID: 1}, Comment: strings.Repeat("x", maxBatchBytes/2)}
	for range 3 {
		if err := c.spool.add(long); err != nil {
			t.Fatal(err)
		}
	}
	for want := 3; want > 0; want-- {
		if n, err := c.spool.send(c.spool.batch(maxBatchRecords)); n != 1 || err != nil {
			t.Fatalf("%d records of more than half of the bytes at once, %v", n, err)
		}
	}
}

// TestLongTextsAreRefused checks that the strings stored with a job have a
// length limit.
func TestLongTextsAreRefused(t *testing.T) {
	c, _ := controller(t, Config{})
	for field, change := range map[string]func(d *model.JobDesc, s string){
		"comment":       func(d *model.JobDesc, s string) { d.Comment = model.Text(s) },
		"admin comment": func(d *model.JobDesc, s string) { d.AdminComment = model.Text(s) },
		"extra":         func(d *model.JobDesc, s string) { d.Extra = model.Text(s) },
		"account":       func(d *model.JobDesc, s string) { d.Account = model.Text(s) },
		"qos":           func(d *model.JobDesc, s string) { d.QOS = model.Text(s) },
		"wckey":         func(d *model.JobDesc, s string) { d.WCKey = model.Text(s) },
		"mail user":     func(d *model.JobDesc, s string) { d.MailUser = model.Text(s) },
		"network":       func(d *model.JobDesc, s string) { d.Network = model.Text(s) },
		"nodes":         func(d *model.JobDesc, s string) { d.ReqNodes = model.Text(s) },
		"node":          func(d *model.JobDesc, s string) { d.AllocNode = model.Text(s) },
		"label":         func(d *model.JobDesc, s string) { d.MCSLabel = model.Text(s) },
		"name":          func(d *model.JobDesc, s string) { d.Name = model.Text(s) },
	} {
		d := desc("/tmp", "true")
		change(d, strings.Repeat("x", 5000))
		if _, err := c.Submit(ownUser, d); errs.KindOf(err) != errs.TooLarge {
			t.Errorf("%s of 5000 bytes: %v", field, err)
		}
	}
	d := desc("/tmp", "true")
	d.Priority = model.Some[uint32](0)
	d.SubmitLine = model.Text(strings.Repeat("x", 100_000))
	d.Environment = append(d.Environment, "LARGE="+strings.Repeat("x", 1<<20))
	d.Script += "#" + strings.Repeat("x", maxScript-len(d.Script)-1)
	if j := viewJob(t, c, submit(t, c, d)); len(j.SubmitLine) != maxComment {
		t.Errorf("a submit line of %d bytes is kept", len(j.SubmitLine))
	}
}

// TestNoUserPushesOutAnother fills the spool. It checks that the spool drops
// the oldest records of the user whose records take the most space, even if
// other users have older records.
func TestNoUserPushesOutAnother(t *testing.T) {
	c := idleSpool(t, quiet)
	const ann, bea = 54321, 54322
	add := func(uid uint32, text string) {
		t.Helper()
		if err := c.spool.add(model.Job{UserID: uid, Comment: text}); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 10_000)
	for range 5 {
		add(ann, "of ann's")
	}
	for range 200 {
		add(bea, long)
	}
	add(bea, "bea's last")
	numbersOf := func(uid uint32) (numbers []uint64) {
		for _, n := range c.spool.pending.numbers {
			if owner, _ := c.journal.Stat(key(spoolPrefix, n)); owner == uid {
				numbers = append(numbers, n)
			}
		}
		return numbers
	}
	c.spool.pending.maxBytes = 1 << 20
	c.spool.trim(&c.spool.pending)
	anns, beas := numbersOf(ann), numbersOf(bea)
	if len(anns) != 5 || len(beas) < 50 || len(beas) > 100 || beas[len(beas)-1] != 205 || beas[0] != 206-uint64(len(beas)) {
		t.Errorf("%d of 5 records are left, and %d of 201 of the user with most of the room: %v", len(anns), len(beas), beas)
	}
	if _, all := c.journal.Usage(ann); all > 1<<20+1000 {
		t.Errorf("the journal has %d bytes", all)
	}
}
