package ctld

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/server"
)

// admin is the identity of the scheduler's user.
var admin = server.Identity{UID: 65533, GID: 65533, FromKernel: true}

// owner is the identity of an ordinary user whose jobs do not start.
var owner = server.Identity{UID: 65534, GID: 65534, FromKernel: true}

// waitingJob submits a job to c on behalf of owner. The job waits for its begin
// time.
func waitingJob(t *testing.T, c *Controller) uint32 {
	t.Helper()
	d := desc("/tmp", "true")
	d.BeginTime = model.At(time.Now().Add(time.Hour))
	j, spec, _, err := c.prepareJob(server.Identity{UID: c.uid}, d, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	j.Job.UserID = owner.UID
	if err := c.enqueue(j, spec, time.Now()); err != nil {
		t.Fatal(err)
	}
	return j.id()
}

func TestUpdate(t *testing.T) {
	c, _ := controller(t, Config{SchedUser: admin.UID, Partitions: []model.Partition{
		{Name: "short", StateUp: partitionUp, Flags: partitionDefault, MaxTime: model.Some[uint32](10)},
		{Name: "long", StateUp: partitionUp}, {Name: "shorter", StateUp: partitionUp, MaxTime: model.Some[uint32](5)}, {Name: "down"}}})
	some, begin := model.Some[uint32], model.At(time.Now().Add(2*time.Hour))
	nice := func(n int64) model.JobDesc { return model.JobDesc{Nice: some(uint32(model.NiceOffset + n))} }
	type step struct {
		client server.Identity
		d      model.JobDesc
		want   int // Slurm's error number
	}
	hold, release, userHeld := model.JobDesc{Priority: some(0)}, model.JobDesc{Priority: model.Infinite[uint32]()},
		model.JobDesc{Priority: some(0), AllocSID: some(userHold)}
	for _, tt := range []struct {
		name  string
		steps []step
		holds func(j, before model.Job) bool
	}{
		{"texts", []step{{owner, model.JobDesc{Name: "n", Comment: "c", Extra: "e", Account: "A", QOS: "q", WCKey: "W"}, 0}},
			func(j, _ model.Job) bool {
				return j.Name == "n" && j.Comment == "c" && j.Extra == "e" && j.Account == "a" && j.QOS == "q" && j.WCKey == "w"
			}},
		{"text that is too long", []step{{owner, model.JobDesc{Name: model.Text(strings.Repeat("x", maxName+1)), Comment: "c"}, fault.PathTooLong}},
			func(j, b model.Job) bool { return j.Name == b.Name && j.Comment == "" }},
		{"an administrator's text",
			[]step{{owner, model.JobDesc{AdminComment: "x"}, fault.AccessDenied}, {admin, model.JobDesc{AdminComment: "y"}, 0}},
			func(j, _ model.Job) bool { return j.AdminComment == "y" }},
		{"owner holds", []step{{owner, hold, 0}},
			func(j, _ model.Job) bool { return j.Priority == 0 && j.StateReason == reasonHeldUser }},
		{"owner holds and releases", []step{{owner, hold, 0}, {owner, release, 0}},
			func(j, b model.Job) bool { return j.Priority == b.Priority && j.StateReason == reasonBegin }},
		{"administrator holds", []step{{admin, hold, 0}, {owner, release, fault.AccessDenied},
			{owner, model.JobDesc{Priority: some(1)}, fault.AccessDenied}, {owner, hold, 0}},
			func(j, _ model.Job) bool { return j.Priority == 0 && j.StateReason == reasonHeldAdmin }},
		{"administrator releases", []step{{admin, hold, 0}, {admin, release, 0}},
			func(j, b model.Job) bool { return j.Priority == b.Priority }},
		{"administrator holds for the owner", []step{{admin, userHeld, 0}, {owner, release, 0}},
			func(j, b model.Job) bool { return j.Priority == b.Priority }},
		{"owner lowers", []step{{owner, model.JobDesc{Priority: some(7)}, 0}}, func(j, _ model.Job) bool { return j.Priority == 7 }},
		{"owner raises", []step{{owner, model.JobDesc{Priority: some(7)}, 0}, {owner, model.JobDesc{Priority: some(8)}, fault.AccessDenied}},
			func(j, _ model.Job) bool { return j.Priority == 7 }},
		{"owner raises a held job beyond the usual", []step{{owner, hold, 0}, {owner, model.JobDesc{Priority: some(0xfffffff0)}, fault.AccessDenied}},
			func(j, _ model.Job) bool { return j.Priority == 0 }},
		{"administrator raises", []step{{admin, model.JobDesc{Priority: some(0xfffffff0)}, 0}},
			func(j, _ model.Job) bool { return j.Priority == 0xfffffff0 }},
		{"time limit", []step{{owner, model.JobDesc{TimeLimit: some(3)}, 0}}, func(j, _ model.Job) bool { return j.TimeLimit == some(3) }},
		{"time limit over the partition's",
			[]step{{owner, model.JobDesc{TimeLimit: some(11)}, fault.InvalidTimeLimit},
				{owner, model.JobDesc{TimeLimit: model.Infinite[uint32]()}, fault.InvalidTimeLimit}},
			func(j, b model.Job) bool { return j.TimeLimit == b.TimeLimit }},
		{"administrator's time limit", []step{{admin, model.JobDesc{TimeLimit: some(11)}, 0}},
			func(j, _ model.Job) bool { return j.TimeLimit == some(11) }},
		{"no time", []step{{owner, model.JobDesc{TimeLimit: some(0)}, 0}}, func(j, _ model.Job) bool { return j.TimeLimit == some(0) }},
		{"begin time", []step{{owner, model.JobDesc{BeginTime: begin}, 0}}, func(j, _ model.Job) bool { return j.EligibleTime == begin }},
		{"begin time in years",
			[]step{{owner, model.JobDesc{BeginTime: begin + 2*366*86400}, fault.InvalidTimeValue}},
			func(j, b model.Job) bool { return j.EligibleTime == b.EligibleTime }},
		{"unsupported", []step{{owner, model.JobDesc{Name: "n", Licenses: "x"}, fault.NotSupported},
			{owner, model.JobDesc{MailType: model.Some[uint16](1)}, fault.NotSupported},
			{admin, model.JobDesc{MemUpdateDelay: model.Some[uint16](5)}, fault.NotSupported}},
			func(j, b model.Job) bool { return j.Name == b.Name }},
		{"what scontrol sends unasked",
			[]step{{owner, model.JobDesc{Name: "n", PowerFlags: model.Some[uint8](0), NTasksPerBoard: model.Some[uint16](0),
				MemUpdateDelay: model.Some[uint16](0), MemUpdateMargin: model.Some[uint16](0), Flags: commandFlags}, 0}},
			func(j, _ model.Job) bool { return j.Name == "n" }},
		{"partition", []step{{owner, model.JobDesc{Partition: "long"}, 0}},
			func(j, b model.Job) bool {
				return j.Partition == "long" && j.TimeLimit == b.TimeLimit && j.Priority == b.Priority
			}},
		{"partition and its time limit", []step{{owner, model.JobDesc{Partition: "long", TimeLimit: some(600)}, 0},
			{owner, model.JobDesc{TimeLimit: some(700)}, 0}},
			func(j, _ model.Job) bool { return j.Partition == "long" && j.TimeLimit == some(700) }},
		{"back to a partition with a time limit",
			[]step{{owner, model.JobDesc{Partition: "long", TimeLimit: some(600)}, 0},
				{owner, model.JobDesc{Partition: "short"}, fault.InvalidTimeLimit}},
			func(j, _ model.Job) bool { return j.Partition == "long" }},
		{"partition of shorter jobs", []step{{owner, model.JobDesc{Partition: "shorter"}, fault.InvalidTimeLimit},
			{owner, model.JobDesc{Partition: "shorter", TimeLimit: some(5)}, 0}},
			func(j, _ model.Job) bool { return j.Partition == "shorter" && j.TimeLimit == some(5) }},
		{"administrator's partition", []step{{admin, model.JobDesc{Partition: "shorter"}, 0}},
			func(j, b model.Job) bool { return j.Partition == "shorter" && j.TimeLimit == b.TimeLimit }},
		{"partition that is down", []step{{owner, model.JobDesc{Partition: "down"}, 2070},
			{owner, model.JobDesc{Partition: "none", Name: "n"}, fault.InvalidPartition}},
			func(j, b model.Job) bool { return j.Partition == b.Partition && j.Name == b.Name }},
		{"nice", []step{{owner, nice(100), 0}}, func(j, b model.Job) bool { return j.Nice == model.NiceOffset+100 && j.Priority == b.Priority-100 }},
		{"nice and back", []step{{owner, nice(100), 0}, {owner, nice(0), 0}},
			func(j, b model.Job) bool { return j.Nice == b.Nice && j.Priority == b.Priority }},
		{"as nice as can be", []step{{owner, nice(1<<31 - 1), 0}, {owner, nice(0), 0}},
			func(j, b model.Job) bool { return j.Priority == b.Priority }},
		{"nice below 0", []step{{owner, nice(-1), fault.AccessDenied}},
			func(j, b model.Job) bool { return j.Nice == b.Nice && j.Priority == b.Priority }},
		{"administrator's nice below 0", []step{{admin, nice(-5), 0}},
			func(j, b model.Job) bool { return j.Nice == model.NiceOffset-5 && j.Priority == b.Priority+5 }},
		{"nice as far as can be", []step{{admin, nice(-1 << 31), 0}}, func(j, _ model.Job) bool { return j.Nice == 0 && j.Priority == 0x7fff0000+1<<31-j.StepID.JobID }},
		{"nice of a lowered job", []step{{admin, model.JobDesc{Priority: some(7)}, 0}, {owner, nice(100), 0}, {owner, nice(0), 0}},
			func(j, b model.Job) bool { return j.Priority == 7 && j.Nice == b.Nice }},
		{"nice of a held job", []step{{owner, hold, 0}, {owner, nice(100), 0}},
			func(j, _ model.Job) bool {
				return j.Priority == 0 && j.StateReason == reasonHeldUser && j.Nice == model.NiceOffset+100
			}},
		{"nice of a released job", []step{{owner, hold, 0}, {owner, nice(100), 0}, {owner, release, 0}},
			func(j, b model.Job) bool { return j.Priority == b.Priority-100 }},
		{"nice of a job that an administrator holds", []step{{admin, hold, 0}, {owner, nice(100), 0}, {owner, release, fault.AccessDenied}},
			func(j, _ model.Job) bool { return j.Priority == 0 && j.StateReason == reasonHeldAdmin }},
		{"another owner", []step{{owner, model.JobDesc{UserID: some(0)}, fault.NoUserID},
			{admin, model.JobDesc{UserID: some(0)}, fault.NotSupported}},
			func(j, _ model.Job) bool { return j.UserID == owner.UID }},
		{"a stranger", []step{{server.Identity{UID: 65000}, hold, fault.InvalidJobID}},
			func(j, b model.Job) bool { return j.Priority == b.Priority }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := waitingJob(t, c)
			before := viewJob(t, c, id)
			for i, s := range tt.steps {
				err := c.updateJob(s.client, key("", uint64(id)), &s.d)
				e, _ := errors.AsType[*errs.Error](err)
				if s.want == 0 && err != nil || s.want != 0 && (e == nil || e.Number != s.want) {
					t.Errorf("change %d: %v, want number %d", i, err, s.want)
				}
			}
			if j := viewJob(t, c, id); !tt.holds(j, before) {
				t.Errorf("the job is %+v", j)
			}
		})
	}
}

// TestSubmittedNice checks that a nice value changes the priority. An ordinary user
// must not submit a job with a negative nice value.
func TestSubmittedNice(t *testing.T) {
	c, _ := controller(t, Config{SchedUser: admin.UID})
	user, may := ownUser, true // the user who runs the controller may raise priorities
	if user.UID == 0 {
		user, may = owner, false // any user but root
	}
	for _, tt := range []struct {
		client server.Identity
		nice   int64
		may    bool
	}{{user, 0, true}, {user, 100, true}, {user, -100, may}, {admin, 100, true}, {admin, -100, true}} {
		d := desc(t.TempDir(), "true")
		d.BeginTime = model.At(time.Now().Add(time.Hour))
		d.UserID, d.Nice = model.Some(user.UID), model.Some(uint32(model.NiceOffset+tt.nice))
		j, spec, _, err := c.prepareJob(tt.client, d, time.Now())
		if !tt.may {
			if number, _ := fault.Number(err); number != fault.InvalidNice {
				t.Errorf("%+v: %v", tt, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := c.enqueue(j, spec, time.Now()); err != nil {
			t.Fatal(err)
		}
		shown := viewJob(t, c, j.id())
		if shown.Nice != uint32(model.NiceOffset+tt.nice) || int64(shown.Priority) != 0x7fff0000-int64(j.id())-tt.nice {
			t.Errorf("%+v: nice %d, priority %d of job %d", tt, shown.Nice, shown.Priority, j.id())
		}
	}
}

// TestUpdateNames checks that an update is refused if the string that names the
// job is not the number of an existing job.
func TestUpdateNames(t *testing.T) {
	c, _ := controller(t, Config{})
	for _, jobText := range []string{"", "0", "99", "1_2", "1+2", "x", "4294967296"} {
		if err := c.updateJob(ownUser, jobText, &model.JobDesc{Name: "x"}); errs.KindOf(err) != errs.NotFound {
			t.Errorf("%q: %v", jobText, err)
		}
	}
}

// TestUnchangeableFields checks that the error for each field that can't be
// changed names the field as the API does, and depends on whether the job has
// started.
func TestUnchangeableFields(t *testing.T) {
	names := map[string]bool{}
	for _, v := range []schema.Version{api.V41, api.V43, api.V45} {
		for _, p := range api.JobDesc.Shape(schema.View{Version: v}).Fields {
			names[p.Name] = true
		}
	}
	for _, list := range []map[string]string{waitingFields, otherFields} {
		for field, name := range list {
			if _, ok := reflect.TypeFor[model.JobDesc]().FieldByName(field); !ok || !names[name] {
				t.Errorf("%s: %s", field, name)
			}
		}
	}
	for _, tt := range []struct {
		d       model.JobDesc
		started bool
		number  int
		field   string
	}{
		{model.JobDesc{}, true, 0, ""},
		{model.JobDesc{StdOut: "x"}, false, fault.NotSupported, "standard_output: "},
		{model.JobDesc{StdOut: "x"}, true, fault.JobNotPending, "the job has started, so it has no standard_output "},
		{model.JobDesc{MailUser: "x", StdOut: "x"}, true, fault.JobNotPending, ""},
		{model.JobDesc{MailUser: "x"}, true, fault.NotSupported, "mail_user: "},
		{model.JobDesc{MinMemory: model.Some(5 | model.MemPerCPU)}, false, fault.NotSupported, "memory_per_cpu: "},
		{model.JobDesc{RespHost: "x"}, false, fault.NotSupported, "this controller "},
	} {
		err := checkUnchangeable(&tt.d, tt.started)
		e, _ := errors.AsType[*errs.Error](err)
		if (err == nil) != (tt.number == 0) || e != nil && (e.Number != tt.number || !strings.HasPrefix(e.Message, tt.field)) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// TestUpdateOfARunningJob checks which fields of a running job can be changed,
// and that the job's step obeys a changed time limit.
func TestUpdateOfARunningJob(t *testing.T) {
	c, _ := controller(t, Config{SchedUser: admin.UID})
	d := desc(t.TempDir(), "sleep 60")
	d.TimeLimit = model.Some[uint32](600)
	id := submit(t, c, d)
	awaitState(t, c, id, model.JobRunning)
	text := key("", uint64(id))
	for _, d := range []model.JobDesc{{BeginTime: model.At(time.Now())}, {Partition: "other"}} {
		if err := c.updateJob(ownUser, text, &d); errs.KindOf(err) != errs.Conflict {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if err := c.updateJob(admin, text, &model.JobDesc{TimeLimit: model.Some[uint32](900), Comment: "more"}); err != nil {
		t.Fatal(err)
	}
	if j := viewJob(t, c, id); j.EndTime != j.StartTime+900*60 || j.Comment != "more" || j.State != model.JobRunning {
		t.Errorf("%+v", j)
	}
	if err := c.updateJob(ownUser, text, &model.JobDesc{TimeLimit: model.Some[uint32](0)}); err != nil {
		t.Fatal(err)
	}
	awaitState(t, c, id, model.JobTimeout)
	for _, d := range []model.JobDesc{{Comment: "late"}, {StdOut: "x"}, {Licenses: "x"}} {
		if e, _ := errors.AsType[*errs.Error](c.updateJob(ownUser, text, &d)); e == nil || e.Number != fault.JobFinished {
			t.Errorf("change of an ended job: %+v: %v", d, e)
		}
	}
}

// TestHoldOfARunningJob checks that a running job that is held, or given a nice
// value, continues, and that the change holds after a requeue.
func TestHoldOfARunningJob(t *testing.T) {
	c, _ := controller(t, Config{SchedUser: admin.UID})
	for _, tt := range []struct {
		client server.Identity
		reason uint32
	}{{ownUser, reasonHeldUser}, {admin, reasonHeldAdmin}} {
		id := submit(t, c, desc(t.TempDir(), "sleep 60"))
		before := awaitState(t, c, id, model.JobRunning)
		text := key("", uint64(id))
		for _, d := range []model.JobDesc{{Priority: model.Some[uint32](0)}, {Nice: model.Some[uint32](model.NiceOffset + 50)}} {
			if err := c.updateJob(tt.client, text, &d); err != nil {
				t.Fatal(err)
			}
		}
		if j := viewJob(t, c, id); j.State != model.JobRunning || j.Priority != 0 || j.StateReason != tt.reason || j.Nice != model.NiceOffset+50 {
			t.Errorf("%+v", j)
		}
		if err := c.requeueJob(ownUser, text, 0); err != nil {
			t.Fatal(err)
		}
		if j := awaitState(t, c, id, model.JobPending); j.StateReason != tt.reason {
			t.Errorf("%+v", j)
		}
		if err := c.updateJob(tt.client, text, &model.JobDesc{Priority: model.Infinite[uint32]()}); err != nil {
			t.Fatal(err)
		}
		if j := awaitState(t, c, id, model.JobRunning); j.Priority != before.Priority-50 {
			t.Errorf("priority %d, it was %d", j.Priority, before.Priority)
		}
		if err := cancel(c, id); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOrderOfPriority checks that a job with a raised priority starts before
// jobs that were submitted earlier.
func TestOrderOfPriority(t *testing.T) {
	c, _ := controller(t, Config{CPUs: 1})
	first := submit(t, c, desc(t.TempDir(), "sleep 60"))
	awaitState(t, c, first, model.JobRunning)
	second, third := submit(t, c, desc(t.TempDir(), "sleep 60")), submit(t, c, desc(t.TempDir(), "sleep 60"))
	err := c.updateJob(server.Identity{}, key("", uint64(third)), &model.JobDesc{Priority: model.Some[uint32](0xffffff00)})
	if err != nil {
		t.Fatal(err)
	}
	if err := cancel(c, first); err != nil {
		t.Fatal(err)
	}
	awaitState(t, c, third, model.JobRunning)
	if j := viewJob(t, c, second); j.State != model.JobPending {
		t.Errorf("the other job is in state %d", j.State)
	}
}

// TestUpdateOverRPC checks updates in three protocol versions. If an update is
// refused, the client must get the text of the error, except in version 22.05.
func TestUpdateOverRPC(t *testing.T) {
	for _, v := range []codec.Version{codec.V2205, codec.V2411, codec.Newest} {
		c, _ := controller(t, Config{})
		rpc, cred := newClient(t, c, v), model.Credential{}
		d := desc(t.TempDir(), "sleep 60")
		d.Priority = model.Some[uint32](0)
		id := submit(t, c, d)
		text := key("", uint64(id))
		if results, err := rpc.UpdateJob(t.Context(), cred, text, &model.JobDesc{Name: "new", Priority: model.Some[uint32](0)}); err != nil || results != nil {
			t.Fatal(v, results, err)
		}
		if j := viewJob(t, c, id); j.Name != "new" || j.StateReason != reasonHeldUser {
			t.Errorf("%v: %+v", v, j)
		}
		_, err := rpc.UpdateJob(t.Context(), cred, text, &model.JobDesc{Licenses: "x"})
		if errs.KindOf(err) != errs.Unsupported || v >= codec.V2302 && !strings.Contains(err.Error(), "can change only account") {
			t.Errorf("%v: %v", v, err)
		}
		if _, err := rpc.UpdateJob(t.Context(), cred, "77", &model.JobDesc{Name: "x"}); errs.KindOf(err) != errs.NotFound {
			t.Errorf("%v: %v", v, err)
		}
		if _, err := rpc.UpdateJob(t.Context(), cred, text, &model.JobDesc{Release: true}); err != nil {
			t.Errorf("%v: %v", v, err)
		}
		awaitState(t, c, id, model.JobRunning)
	}
}

// TestUpdatesSurvive checks that changes to jobs survive a crash of the
// controller. It also checks that a step obeys a time limit that was changed
// before the crash.
func TestUpdatesSurvive(t *testing.T) {
	s := newSite(t)
	s.start()
	d := desc(t.TempDir(), "sleep 60")
	held := *d
	held.Priority = model.Some[uint32](0)
	runningID, heldID := s.accepted(d), s.accepted(&held)
	s.await(runningID, model.JobRunning)
	for id, d := range map[uint32]model.JobDesc{
		runningID: {Comment: "a", TimeLimit: model.Some[uint32](500)}, // 50 s
		heldID:    {Name: "b", TimeLimit: model.Some[uint32](1)},
	} {
		if _, err := s.client.UpdateJob(t.Context(), model.Credential{}, key("", uint64(id)), &d); err != nil {
			t.Fatal(err)
		}
	}
	s.kill()
	s.start()
	if j := s.await(runningID, model.JobRunning); j.Comment != "a" || j.TimeLimit != model.Some[uint32](500) {
		t.Errorf("%+v", j)
	}
	if j := s.job(heldID); j.State != model.JobPending || j.Name != "b" || j.StateReason != reasonHeldUser || j.TimeLimit != model.Some[uint32](1) {
		t.Errorf("%+v", j)
	}
	if _, err := s.client.UpdateJob(t.Context(), model.Credential{}, key("", uint64(heldID)), &model.JobDesc{Release: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.KillJobs(t.Context(), model.Credential{}, &model.KillJobs{Jobs: []string{key("", uint64(runningID))}, Signal: 9}); err != nil {
		t.Fatal(err)
	}
	s.await(runningID, model.JobCancelled)
	s.await(heldID, model.JobTimeout) // with the new time limit
}
