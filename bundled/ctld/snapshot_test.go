package ctld

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// heldJob returns the description of a job that is held until it is released.
func heldJob(dir string) *model.JobDesc {
	d := desc(dir, "true")
	d.Priority = model.Some[uint32](0)
	return d
}

// TestListIsASnapshot checks that a list shows all jobs as they were at the
// time of the request, even if jobs change while the list is sent.
func TestListIsASnapshot(t *testing.T) {
	c, _ := controller(t, Config{})
	dir := t.TempDir()
	want := map[uint32]model.JobState{}
	for range 3 {
		want[submit(t, c, heldJob(dir))] = model.JobPending
	}
	list, _ := c.snapshot()
	next := pull(t.Context(), c.visible(ownUser, list, nil), func(r *record) model.Job { return r.view(time.Now()) })
	got := map[uint32]model.JobState{}
	for range want {
		for id := range want {
			if err := cancel(c, id); err != nil {
				t.Fatal(err)
			}
		}
		submit(t, c, heldJob(dir))
		j, err := next()
		if err != nil {
			t.Fatal(err)
		}
		got[j.StepID.JobID] = j.State
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	list, _ = c.snapshot()
	if n := len(c.visible(ownUser, list, nil)); n != 6 {
		t.Errorf("%d jobs are listed later, want 6", n)
	}
}

// TestVisible checks that ordinary users see only their own jobs, that the
// controller's user sees all jobs, and that the jobs are sorted by number. If a
// request names jobs, visible must return no other jobs.
func TestVisible(t *testing.T) {
	c, _ := controller(t, Config{MaxJobs: 100})
	const ann, bea = 54321, 54322
	for _, uid := range []uint32{ann, bea, ann, ann, bea} { // the jobs 1 to 5
		if _, err := reserveJob(c, uid); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := c.snapshot()
	for _, tt := range []struct {
		uid       uint32
		ids, want []uint32
	}{
		{ann, nil, []uint32{1, 3, 4}},
		{ann, []uint32{4, 99, 2, 1, 4, 0}, []uint32{1, 4}},
		{ann, []uint32{}, nil},
		{bea, []uint32{1, 3}, nil},
		{bea, []uint32{5, 4, 3, 2, 1}, []uint32{2, 5}},
		{54323, nil, nil},
		{c.uid, nil, []uint32{1, 2, 3, 4, 5}},
		{c.uid, []uint32{2, 1}, []uint32{1, 2}},
	} {
		client := otherUser
		client.UID = tt.uid
		var got []uint32
		for _, r := range c.visible(client, list, slices.Clone(tt.ids)) {
			got = append(got, r.id())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("uid %d asks for %v and gets %v, want %v", tt.uid, tt.ids, got, tt.want)
		}
	}
}

// TestUnreadListsTakeLittleMemory runs clients that request long lists but do
// not read the answers. It checks that these clients neither fill the
// controller's memory nor block other clients.
func TestUnreadListsTakeLittleMemory(t *testing.T) {
	s := newSite(t)
	s.start()
	d := heldJob(t.TempDir())
	text := model.Text(strings.Repeat("x", 4000))
	d.Comment, d.AdminComment, d.Extra, d.SubmitLine = text, text, text, text
	d.StdOut, d.StdErr, d.StdIn = "/"+text, "/"+text, "/"+text
	for range 300 {
		s.accepted(d)
	}
	request, err := message.Encode(codec.V2411, 0, message.RequestJobInfo, &message.Credential{Plugin: message.PluginNone}, &message.JobInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var unread []net.Conn
	for range 40 {
		nc, err := net.Dial("unix", filepath.Join(s.state, "socket"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Write(request); err != nil {
			t.Fatal(err)
		}
		unread = append(unread, nc)
	}
	for _, nc := range unread {
		if _, err := nc.Read(make([]byte, 1)); err != nil { // the list is encoded and being sent
			t.Fatal(err)
		}
	}
	n := 0
	if _, err := s.client.Jobs(t.Context(), model.Credential{}, model.Query{}, func(*model.Job) error { n++; return nil }); n != 300 || err != nil {
		t.Errorf("another client gets %d jobs, %v", n, err)
	}
	if peak := peakMemory(t, s.cmd.Process.Pid); peak > 128<<20 {
		t.Errorf("the controller took %d MiB", peak>>20)
	}
}

// peakMemory returns the peak resident memory of a process, in bytes.
func peakMemory(t *testing.T, pid int) (bytes int64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(b), "VmHWM:")
	if _, err := fmt.Sscanf(peak, "%d kB", &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes << 10
}
