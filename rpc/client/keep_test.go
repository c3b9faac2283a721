package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/internal/origin"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// number returns the number of the request that a list of jobs answers, and the
// age of the answer.
func (k *clock) number(t *testing.T, c *client.Client, cred model.Credential, q model.Query, limit *origin.Origin) (n uint32, age time.Duration) {
	t.Helper()
	_, err := c.Jobs(origin.With(context.Background(), limit), cred, q, func(j *model.Job) error {
		n = j.StepID.JobID
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return n, limit.Age()
}

// TestKeptAnswers checks which requests get an answer that was kept, and that
// they learn its age. A change makes all answers useless, even if it fails.
func TestKeptAnswers(t *testing.T) {
	t.Parallel()
	type call struct {
		cred         model.Credential // the zero value stands for ann
		query        model.Query
		accept, keep int // seconds
		after        int // seconds since the previous call
		change       bool
		want         uint32 // number of the request that the answer belongs to
		old          bool
	}
	for _, tt := range []struct {
		name  string
		calls []call
	}{
		{"without a limit each request is sent", []call{{want: 1}, {want: 2}}},
		{"kept", []call{{keep: 9, want: 1}, {accept: 9, want: 1, old: true}, {want: 2}}},
		{"not kept", []call{{want: 1}, {accept: 9, keep: 9, want: 2}, {accept: 9, want: 2, old: true}}},
		{"too old", []call{{keep: 60, want: 1}, {after: 3, accept: 2, want: 2}}},
		{"not too old", []call{{keep: 60, want: 1}, {after: 3, accept: 4, want: 1, old: true}}},
		{"replaced", []call{{keep: 60, want: 1}, {keep: 60, want: 2}, {accept: 60, want: 2, old: true}}},
		{"of another user", []call{{keep: 60, want: 1}, {cred: model.Credential{Token: "another token"}, accept: 60, want: 2}}},
		{"acting as another user", []call{{keep: 60, want: 1}, {cred: model.Credential{Token: ann.Token, ActAs: "ben"}, accept: 60, want: 2}}},
		{"another request", []call{{keep: 60, want: 1}, {query: model.Query{Flags: model.ShowAll}, accept: 60, want: 2}}},
		{"after a change", []call{{keep: 60, want: 1}, {change: true}, {accept: 60, want: 3}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newClock(t, func() {})
			c, now := k.client(), time.Now()
			c.Clock(func() time.Time { return now })
			kept := int32(0)
			for i, call := range tt.calls {
				now = now.Add(time.Duration(call.after)*time.Second + time.Millisecond)
				if call.change {
					if err := c.Reconfigure(context.Background(), ann); err == nil {
						t.Error("this controller answers with something else")
					}
					continue
				}
				if call.cred.Token == "" {
					call.cred = ann
				}
				got, age := k.number(t, c, call.cred, call.query, &origin.Origin{After: accepting(now, call.accept), Keep: time.Duration(call.keep) * time.Second})
				if call.old {
					kept++
				}
				if got != call.want || call.old != (age > 0) {
					t.Errorf("call %d: answer %d, age %v", i, got, age)
				}
			}
			if k.kept.Load() != kept || k.shared.Load() != 0 {
				t.Errorf("counted %d answers that were kept, want %d, and %d that were shared", k.kept.Load(), kept, k.shared.Load())
			}
		})
	}
}

// accepting returns the time after which data of at most the given age was
// requested, in seconds.
func accepting(now time.Time, age int) (after time.Time) {
	if age == 0 {
		return time.Time{}
	}
	return now.Add(-time.Duration(age) * time.Second)
}

// TestAnswerDuringChange checks that an answer that was requested before the end
// of a change is not kept.
func TestAnswerDuringChange(t *testing.T) {
	t.Parallel()
	arrived, proceed, requests := make(chan struct{}), make(chan struct{}), atomic.Int32{}
	k := newClock(t, func() {
		if requests.Add(1) == 1 { // the list
			close(arrived)
			<-proceed
		}
	})
	c := k.client()
	var wait sync.WaitGroup
	wait.Go(func() { k.number(t, c, ann, model.Query{}, &origin.Origin{Keep: time.Hour}) })
	<-arrived
	_ = c.Reconfigure(context.Background(), ann)
	close(proceed)
	wait.Wait()
	if got, _ := k.number(t, c, ann, model.Query{}, &origin.Origin{After: time.Now().Add(-time.Hour)}); got != 3 {
		t.Errorf("got answer %d", got)
	}
}

// TestErrorsAreNotKept checks that a call that accepts older data does not get an
// older error.
func TestErrorsAreNotKept(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	peer := script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing || asked.Add(1) == 1 {
			rc(nc, r.Version, fault.AccessDenied)
			return
		}
		b, err := message.Encode(r.Version, 0, message.ResponseJobInfo, nil, &message.JobInfo{})
		if err != nil {
			t.Error(err)
		}
		nc.Write(b)
	})
	c := client.New(client.Config{Controllers: []client.Address{peer.Address}})
	for i, wantError := range []bool{true, false, false} {
		limit := &origin.Origin{After: time.Now().Add(-time.Hour), Keep: time.Hour}
		_, err := c.Jobs(origin.With(context.Background(), limit), ann, model.Query{}, func(*model.Job) error { return nil })
		if (err != nil) != wantError {
			t.Errorf("call %d: error %v", i, err)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// TestKeptAnswersEnd checks that an answer is forgotten after its time.
func TestKeptAnswersEnd(t *testing.T) {
	t.Parallel()
	k := newClock(t, func() {})
	c := k.client()
	k.number(t, c, ann, model.Query{}, &origin.Origin{Keep: time.Millisecond})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if got, _ := k.number(t, c, ann, model.Query{}, &origin.Origin{After: time.Now().Add(-time.Hour)}); got == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("still kept")
		}
	}
}

// TestShortAnswersAreCounted checks that short answers, which need no memory of
// the budget before, need some while they are kept, that they can't fill the
// budget, and that the last ones are kept.
func TestShortAnswersAreCounted(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	budget := client.NewBudget(size)
	c := client.New(client.Config{Controllers: []client.Address{newClock(t, func() {}).Address}, Answers: budget})
	ask := func(user int, after time.Time) time.Duration {
		limit := &origin.Origin{After: after, Keep: time.Hour}
		if _, err := c.Jobs(origin.With(context.Background(), limit), model.Credential{Token: fmt.Sprint(user)}, model.Query{}, func(*model.Job) error { return nil }); err != nil {
			t.Fatal(err)
		}
		return limit.Age()
	}
	hourAgo := time.Now().Add(-time.Hour)
	for user := range 500 {
		ask(user, hourAgo)
	}
	if ask(499, hourAgo) == 0 || ask(0, hourAgo) != 0 {
		t.Error("others than the last ones are kept")
	}
	ask(499, time.Time{}) // its answer replaces the one that is kept
	_, answers := c.Remembered()
	if used := size - budget.Free(); used < answers<<10 || used > size/2 || answers < 50 {
		t.Errorf("%d answers use %d bytes", answers, used)
	}
	if err := c.Reconfigure(context.Background(), ann); err == nil {
		t.Error("this controller answers with something else")
	}
	if _, answers := c.Remembered(); answers != 0 || budget.Free() != size {
		t.Errorf("after a change: %d answers, %d bytes", answers, size-budget.Free())
	}
}

// TestManyKeptAnswers checks that a credential with many requests discards only its
// own kept answers.
func TestManyKeptAnswers(t *testing.T) {
	t.Parallel()
	c := client.New(client.Config{Controllers: []client.Address{newClock(t, func() {}).Address}, Answers: client.NewBudget(1 << 20)})
	ask := func(cred model.Credential, flags model.Show) time.Duration {
		limit := &origin.Origin{After: time.Now().Add(-time.Hour), Keep: time.Hour}
		_, err := c.Jobs(origin.With(context.Background(), limit), cred, model.Query{Flags: flags}, func(*model.Job) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return limit.Age()
	}
	for flags := range model.Show(3) {
		ask(ann, flags)
	}
	second := model.Credential{Token: "second"}
	for flags := range model.Show(500) {
		ask(second, flags)
	}
	if ask(second, 499) == 0 || ask(second, 0) != 0 {
		t.Error("others than the last answers of the second user are kept")
	}
	for flags := range model.Show(3) {
		if ask(ann, flags) == 0 {
			t.Errorf("answer %d of the first user was discarded", flags)
		}
	}
}

// TestKeptAnswersGiveWay checks that kept answers leave their memory to others
// that need it.
func TestKeptAnswersGiveWay(t *testing.T) {
	t.Parallel()
	answer := incompressible(t, 3<<20)
	peer := script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		nc.Write(answer)
	})
	budget := client.NewBudget(5 << 20)
	c := client.New(client.Config{Controllers: []client.Address{peer.Address}, Answers: budget})
	for i, cred := range []model.Credential{ann, {Token: "second"}, {Token: "third"}} {
		limit := &origin.Origin{Keep: time.Hour}
		_, err := c.Jobs(origin.With(context.Background(), limit), cred, model.Query{}, func(*model.Job) error { return nil })
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
		// An answer that had to wait for the memory of the one before may be
		// read piece by piece, which is not kept.
		if used := 5<<20 - budget.Free(); used > 4<<20 || i == 0 && used < 2<<20 {
			t.Errorf("call %d: %d bytes are in use, expected those of one answer", i, used)
		}
	}
}

// TestKeptAnswersOfOthersStay checks that a credential that may not have more
// memory discards only its own kept answers.
func TestKeptAnswersOfOthersStay(t *testing.T) {
	t.Parallel()
	answer := incompressible(t, 3<<20)
	peer := script(t, "ctl", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		nc.Write(answer)
	})
	c := client.New(client.Config{Controllers: []client.Address{peer.Address}, Answers: client.NewBudget(16 << 20)})
	ask := func(cred model.Credential, flags model.Show) (age time.Duration) {
		limit := &origin.Origin{After: time.Now().Add(-time.Hour), Keep: time.Hour}
		if _, err := c.Jobs(origin.With(context.Background(), limit), cred, model.Query{Flags: flags}, func(*model.Job) error { return nil }); err != nil {
			t.Error(err)
		}
		return limit.Age()
	}
	ask(ann, 0)
	second := model.Credential{Token: "second"}
	for flags := range model.Show(8) { // each is another request
		ask(second, flags)
	}
	if ask(second, 0) != 0 {
		t.Error("the second user keeps more than half of the memory")
	}
	if ask(ann, 0) == 0 {
		t.Error("the answer of the first user was discarded")
	}
}

// TestTooLongToKeep checks that an answer longer than all answers that can be kept
// discards none of them.
func TestTooLongToKeep(t *testing.T) {
	t.Parallel()
	long, err := message.Encode(codec.Newest, 0, message.ResponseJobInfo, nil, &message.JobInfo{Jobs: codec.Stream[model.Job]{
		List: slices.Repeat([]model.Job{{Name: strings.Repeat("a", 1<<10)}}, 3<<10)}})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	peer := scriptBodies(t, func(nc net.Conn, r message.Header, _ []byte) {
		if asked.Add(1) == 2 {
			nc.Write(long)
			return
		}
		short, err := message.Encode(r.Version, 0, message.ResponseJobInfo, nil, &message.JobInfo{})
		if err != nil {
			t.Error(err)
		}
		nc.Write(short)
	})
	c := client.New(client.Config{Controllers: []client.Address{peer.Address}, Answers: client.NewBudget(1 << 20)})
	ask := func(cred model.Credential) (age time.Duration) {
		limit := &origin.Origin{After: time.Now().Add(-time.Hour), Keep: time.Hour}
		if _, err := c.Jobs(origin.With(context.Background(), limit), cred, model.Query{}, func(*model.Job) error { return nil }); err != nil {
			t.Error(err)
		}
		return limit.Age()
	}
	ask(ann)
	ask(model.Credential{Token: "second"})
	if ask(ann) == 0 || asked.Load() != 2 {
		t.Errorf("the first answer was discarded; %d requests", asked.Load())
	}
}

// incompressible returns a list of jobs of about n bytes that can't be
// compressed.
func incompressible(t *testing.T, n int) []byte {
	t.Helper()
	random := rand.NewChaCha8([32]byte{})
	list := &message.JobInfo{}
	for range n >> 10 {
		name := make([]byte, 1<<10)
		random.Read(name)
		for i := range name {
			name[i] |= 0x80 // no zero, which would end the text
		}
		list.Jobs.List = append(list.Jobs.List, model.Job{StepID: model.StepID{JobID: 1}, Name: string(name)})
	}
	b, err := message.Encode(codec.Newest, 0, message.ResponseJobInfo, nil, list)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestUnchangedPartitions checks that partitions are transferred again only if
// they have changed, or after a while in any case, because slurmctld does not date
// all changes. Calls then get the same partitions. Another credential and other
// flags have their own.
func TestUnchangedPartitions(t *testing.T) {
	t.Parallel()
	var lists, unchanged atomic.Int32
	var changed atomic.Int64 // time of the last change
	changed.Store(1000)
	peer := scriptBodies(t, func(nc net.Conn, r message.Header, body []byte) {
		var request message.PartitionInfoRequest
		if err := message.DecodeBody(r.Version, r.Type, body, &request); err != nil {
			t.Error(err)
		}
		if int64(request.LastUpdate)-1 >= changed.Load() {
			unchanged.Add(1)
			rc(nc, r.Version, fault.NoChange)
			return
		}
		n := lists.Add(1)
		b, err := message.Encode(r.Version, 0, message.ResponsePartitionInfo, nil, &message.PartitionInfo{LastUpdate: model.Time(changed.Load() + 5),
			Partitions: codec.Stream[model.Partition]{List: []model.Partition{{Name: fmt.Sprint("p", n)}}}})
		if err != nil {
			t.Error(err)
		}
		nc.Write(b)
	})
	c, now := client.New(client.Config{Controllers: []client.Address{peer.Address}}), time.Now()
	c.Clock(func() time.Time { return now })
	get := func(cred model.Credential, flags model.Show, want string, wantLists, wantUnchanged int32) {
		t.Helper()
		now = now.Add(time.Second)
		got := ""
		_, err := c.Partitions(context.Background(), cred, model.Query{Flags: flags, Undated: true}, func(p *model.Partition) error { got = p.Name; return nil })
		if err != nil || got != want || lists.Load() != wantLists || unchanged.Load() != wantUnchanged {
			t.Errorf("%s, %v, after %d lists and %d times no change, expected %s, %d, %d", got, err, lists.Load(), unchanged.Load(), want, wantLists, wantUnchanged)
		}
	}
	get(ann, 0, "p1", 1, 0)
	get(ann, 0, "p1", 1, 1)
	get(ann, 0, "p1", 1, 2)
	get(ann, model.ShowAll, "p2", 2, 2)
	get(model.Credential{Token: "another token"}, 0, "p3", 3, 2)
	changed.Store(2000)
	get(ann, 0, "p4", 4, 2)
	get(ann, 0, "p4", 4, 3)
	now = now.Add(time.Hour)
	get(ann, 0, "p5", 5, 3)
	for n := range int32(14) { // calls do not make the partitions younger
		get(ann, 0, "p5", 5, 4+n)
	}
	get(ann, 0, "p6", 6, 17)
	get(ann, 0, "p6", 6, 18)
}
