package server

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/limit"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// jobLists answers with jobs of 1 MiB each. The field CPUsMin of the request is
// the number of jobs.
func jobLists(_ context.Context, r *Request) (message.Type, message.Body, error) {
	var q message.GetAccountingJobs
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	job := model.AccountingJob{SubmitLine: strings.Repeat("x", 1<<20)}
	var answer message.AccountingJobs
	answer.Records.Len = int(q.CPUsMin)
	answer.Records.Pull = func() (*model.AccountingJob, error) {
		if job.JobID++; job.JobID == 90 {
			return nil, errors.New("the database failed")
		}
		return &job, nil
	}
	body, err := r.Spool(message.AccountingGotJobs, &answer)
	return message.AccountingGotJobs, body, err
}

// ask sends a request for n jobs in a new session and returns the connection.
func ask(t *testing.T, f *fixture, cred message.Credential, n uint32) net.Conn {
	t.Helper()
	nc := f.dial(t, "tcp")
	if rc, err := persistent(t, nc, codec.V2411, opening(t, codec.V2411, cred, codec.V2411)); err != nil || rc.Code != 0 {
		t.Fatal(rc, err)
	}
	requestJobs(t, nc, n)
	return nc
}

func requestJobs(t *testing.T, nc net.Conn, n uint32) {
	t.Helper()
	b, err := message.EncodePersistent(codec.V2411, message.AccountingGetJobs,
		&message.GetAccountingJobs{AccountingJobFilter: model.AccountingJobFilter{CPUsMin: n}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(b); err != nil {
		t.Fatal(err)
	}
}

// readJobs reads an answer in a session. It returns the number of jobs in the
// answer or, for a refusal, the error number.
func readJobs(t *testing.T, nc net.Conn) (jobs int, refusal uint32) {
	t.Helper()
	b, err := wire.Read(nc, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if message.Type(binary.BigEndian.Uint16(b)) == message.AccountingRC {
		var rc message.PersistRC
		if err := message.DecodeBody(codec.V2411, message.AccountingRC, b[2:], &rc); err != nil {
			t.Fatal(err)
		}
		return 0, rc.Code
	}
	var list message.AccountingJobs
	if err := message.DecodeBody(codec.V2411, message.AccountingGotJobs, b[2:], &list); err != nil {
		t.Fatal(err)
	}
	return len(list.Records.List), 0
}

// TestSpooledAnswers checks that answers of any length arrive completely, and
// that no file remains.
func TestSpooledAnswers(t *testing.T) {
	dir := t.TempDir()
	f := start(t, &Server{SpoolDir: dir, Persistent: map[message.Type]Handler{message.AccountingGetJobs: jobLists}})
	nc := ask(t, f, token, 0)
	for i, n := range []uint32{0, 1, 20, 0, 3} {
		if i > 0 {
			requestJobs(t, nc, n)
		}
		if got, refusal := readJobs(t, nc); got != int(n) || refusal != 0 {
			t.Errorf("%d jobs, refusal %d; want %d jobs", got, refusal, n)
		}
	}
	requestJobs(t, nc, 95)
	if _, refusal := readJobs(t, nc); refusal != fault.Internal {
		t.Errorf("a list that fails in the middle: refusal %d", refusal)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v is left, %v", files, err)
	}
}

// TestUnreadAnswersAreBounded checks that a user who does not read long answers
// gets no more of them. Other users must still get theirs.
func TestUnreadAnswersAreBounded(t *testing.T) {
	f := start(t, &Server{SpoolDir: t.TempDir(), SpoolBytes: limit.DaemonSpoolBytes.WithShare(100 << 20), Persistent: map[message.Type]Handler{message.AccountingGetJobs: jobLists}})
	unread := ask(t, f, token, 80)
	if _, err := unread.Read(make([]byte, 1)); err != nil { // the answer is being sent
		t.Fatal(err)
	}
	second := ask(t, f, token, 80)
	if _, refusal := readJobs(t, second); refusal != fault.Backoff {
		t.Errorf("the second long answer: refusal %d", refusal)
	}
	bob := token
	bob.ActAs = "bob"
	if got, refusal := readJobs(t, ask(t, f, bob, 80)); got != 80 {
		t.Errorf("another user: %d jobs, refusal %d", got, refusal)
	}
	if got, refusal := readJobs(t, ask(t, f, token, 0)); refusal != 0 {
		t.Errorf("a short answer: %d jobs, refusal %d", got, refusal)
	}
	unread.Close()
	for {
		requestJobs(t, second, 80)
		if got, refusal := readJobs(t, second); got == 80 {
			return
		} else if refusal != fault.Backoff {
			t.Fatalf("after the first was closed: %d jobs, refusal %d", got, refusal)
		}
	}
}

// controllerLists answers a request for jobs in the controller's protocol. For
// each id in the request, it sends a job of 1 MiB.
func controllerLists(_ context.Context, r *Request) (message.Type, message.Body, error) {
	var q message.JobInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	job := model.Job{Comment: strings.Repeat("x", 1<<20)}
	var answer message.JobInfo
	answer.Jobs.Len = len(q.JobIDs)
	answer.Jobs.Pull = func() (*model.Job, error) { return &job, nil }
	body, err := r.Spool(message.ResponseJobInfo, &answer)
	return message.ResponseJobInfo, body, err
}

// request requests n jobs on a new connection.
func request(t *testing.T, f *fixture, v codec.Version, cred message.Credential, n int) net.Conn {
	t.Helper()
	nc := f.dial(t, "tcp")
	if _, err := nc.Write(encode(t, v, message.RequestJobInfo, &cred, &message.JobInfoRequest{JobIDs: make([]uint32, n)})); err != nil {
		t.Fatal(err)
	}
	return nc
}

// readJobList reads the answer to the only request on nc. It returns the number
// of jobs in the answer or, for a refusal, the error number.
func readJobList(t *testing.T, nc net.Conn) (jobs int, refusal uint32) {
	t.Helper()
	b, err := wire.Read(nc, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := message.ParseFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	if frame.Header.Type == message.ResponseRC {
		return 0, code(t, frame)
	}
	var list message.JobInfo
	if err := frame.Decode(&list); err != nil {
		t.Fatal(err)
	}
	return len(list.Jobs.List), 0
}

// TestSpooledAnswersOfTheController checks that long answers arrive in the
// controller's protocol, with every version of the header.
func TestSpooledAnswersOfTheController(t *testing.T) {
	dir := t.TempDir()
	f := start(t, &Server{SpoolDir: dir, Handlers: map[message.Type]Handler{message.RequestJobInfo: controllerLists}})
	for _, v := range []codec.Version{codec.V2205, codec.V2302, codec.Newest} {
		for _, n := range []int{0, 1, 20} {
			if got, refusal := readJobList(t, request(t, f, v, token, n)); got != n || refusal != 0 {
				t.Errorf("protocol %d: %d jobs, refusal %d; want %d jobs", v, got, refusal, n)
			}
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v is left, %v", files, err)
	}
}

// TestUnreadAnswersOfTheControllerAreBounded checks that a user who requests
// lists on many connections, and does not read the answers, gets no more lists.
// Other users must still get theirs.
func TestUnreadAnswersOfTheControllerAreBounded(t *testing.T) {
	f := start(t, &Server{SpoolDir: t.TempDir(), SpoolBytes: limit.DaemonSpoolBytes.WithShare(100 << 20), Handlers: map[message.Type]Handler{message.RequestJobInfo: controllerLists}})
	unread := request(t, f, codec.V2411, token, 80)
	if _, err := unread.Read(make([]byte, 1)); err != nil { // the answer is being sent
		t.Fatal(err)
	}
	for range 10 {
		if got, refusal := readJobList(t, request(t, f, codec.V2411, token, 80)); refusal != fault.Backoff {
			t.Errorf("another long answer: %d jobs, refusal %d", got, refusal)
		}
	}
	bob := token
	bob.ActAs = "bob"
	if got, refusal := readJobList(t, request(t, f, codec.V2411, bob, 80)); got != 80 {
		t.Errorf("another user: %d jobs, refusal %d", got, refusal)
	}
	unread.Close()
	for {
		if got, refusal := readJobList(t, request(t, f, codec.V2411, token, 80)); got == 80 {
			return
		} else if refusal != fault.Backoff {
			t.Fatalf("after the first was closed: %d jobs, refusal %d", got, refusal)
		}
	}
}

// TestSpoolWithoutDisk checks that long answers still arrive if they can't be
// stored on disk, and that their memory is limited and released.
func TestSpoolWithoutDisk(t *testing.T) {
	small := t.TempDir()
	if err := unix.Mount("none", small, "tmpfs", 0, "size=2m"); err == nil {
		t.Cleanup(func() { unix.Unmount(small, unix.MNT_DETACH) })
	} else {
		t.Log("the disk that becomes full is not tested:", err)
	}
	for name, dir := range map[string]string{"missing": filepath.Join(small, "none"), "full": small} {
		t.Run(name, func(t *testing.T) {
			f := start(t, &Server{SpoolDir: dir, Bytes: limit.DaemonRequestBytes.WithShare(6 << 20), Super: func(uint32) bool { return false },
				Persistent: map[message.Type]Handler{message.AccountingGetJobs: jobLists}})
			// The server releases the memory a moment after the client has
			// received the answer.
			awaitRelease := func() {
				used := func() int {
					n, _ := f.requestBudget.bytes.Counts()
					return n
				}
				for end := time.Now().Add(30 * time.Second); used() > 0 && time.Now().Before(end); {
					time.Sleep(5 * time.Millisecond)
				}
				if n := used(); n > 0 {
					t.Errorf("%d bytes are still reserved", n)
				}
			}
			for range 3 {
				if jobs, refusal := readJobs(t, ask(t, f, token, 5)); jobs != 5 || refusal != 0 {
					t.Errorf("%d jobs, refusal %d", jobs, refusal)
				}
				awaitRelease()
			}
			if _, refusal := readJobs(t, ask(t, f, token, 7)); refusal == 0 && (name == "missing" || isMounted(small)) {
				t.Error("no limit on the memory")
			}
			awaitRelease()
		})
	}
}

// isMounted reports whether dir is a file system of less than 16 MiB.
func isMounted(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && int64(st.Blocks)*st.Bsize < 16<<20
}
