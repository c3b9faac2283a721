package jobs

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/integration/harness"
)

// TestAccountingLists checks that the records of the bundled accounting daemon
// are served in every API version, below both /scheddb/ and /slurmdb/. Lists
// that the test does not fill must contain the records that every database has.
func TestAccountingLists(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t, func(l *harness.Lab) { l.Restd.Env = append(l.Restd.Env, "SCHEDRESTD_NAMES=both") })
	id := l.Submit("exit 3", map[string]any{"name": "kept"})
	l.AwaitEnd(id)
	harness.Eventually(t, "the job is recorded as ended", func() bool {
		a := l.Request("GET", fmt.Sprintf("/scheddb/%s/job/%d", harness.Version, id), "")
		return a.Status == 200 && a.Get("jobs", 0, "state", "current", 0) == "FAILED"
	})
	for _, v := range harness.APIVersions {
		for _, segment := range []string{"scheddb", "slurmdb"} {
			get := func(path string) harness.Answer { return l.Request("GET", "/"+segment+"/"+v+"/"+path, "") }
			for _, path := range []string{fmt.Sprintf("job/%d", id), "jobs", "jobs?users=" + l.Owner, fmt.Sprintf("jobs?job_name=kept&step=%d&state=FAILED&show_duplicates=true", id)} {
				a := get(path).Want(t, 200)
				if len(a.List("jobs")) != 1 || a.Get("jobs", 0, "name") != "kept" || a.Get("jobs", 0, "exit_code", "return_code", "number") != 3.0 || a.Get("jobs", 0, "user") != l.Owner {
					t.Errorf("%s: %s", path, a.Text)
				}
			}
			for _, path := range []string{"jobs?users=nobody-i-know", "jobs?state=RUNNING", "jobs?cluster=elsewhere", "jobs?end_time=1000"} {
				if a := get(path).Want(t, 200); len(a.List("jobs")) != 0 {
					t.Errorf("%s: %s", path, a.Text)
				}
			}
			if a := get("tres").Want(t, 200); len(a.List("TRES")) != 4 || a.Get("TRES", 1, "type") != "mem" {
				t.Errorf("tres: %s", a.Text)
			}
			clusters := get("clusters").Want(t, 200)
			name := fmt.Sprint(clusters.Get("clusters", 0, "name"))
			if len(clusters.List("clusters")) != 1 || get("cluster/"+name).Want(t, 200).Get("clusters", 0, "name") != name {
				t.Errorf("clusters: %s", clusters.Text)
			}
			for list, first := range map[string][]any{"accounts": {"name", "root"}, "users": {"name", "root"}, "associations": {"account", "root"}, "qos": {"name", "normal"}} {
				if a := get(list).Want(t, 200); len(a.List(list)) == 0 || a.Get(list, 0, first[0]) != first[1] {
					t.Errorf("%s: %s", list, a.Text)
				}
			}
			for path, list := range map[string]string{"account/lab": "accounts", "user/no-such-user": "users", "qos/none": "qos", "cluster/elsewhere": "clusters", "job/4000000": "jobs"} {
				status := map[string]int{"scheddb": 404, "slurmdb": 200}[segment]
				if a := get(path).Want(t, status); a.List(list) == nil || len(a.List(list)) != 0 {
					t.Errorf("%s: %s", path, a.Text)
				}
			}
			get("job/x").Want(t, 404)
			get("jobs?qos=none").Want(t, 422)
			get("jobs?qos=normal").Want(t, 501)
			get("jobs?association=1").Want(t, 501)
			get("jobs?state=DREAMING").Want(t, 422)
		}
	}
}

// TestAccountingSessions checks that several requests with one token share a
// session with the accounting daemon. A request with a forged or expired token
// of the same user must not use this session. After a restart of the daemon,
// the gateway must open a new session.
func TestAccountingSessions(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	k := l.StartCounted(t)
	c := k.Client()
	defer c.CloseIdleConnections()
	key, err := os.ReadFile(l.Key())
	harness.Must(t, err)
	path := "/scheddb/" + harness.Version + "/tres"
	newToken := func(key []byte, lifespan time.Duration) string {
		now := time.Now()
		return harness.NewToken(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(lifespan).Unix(), "sun": l.Owner})
	}
	send := func(token string, status int) (cost int64) {
		t.Helper()
		return k.Dbd.ConnsDuring(func() { k.Request(c, "GET", path, "", "X-SCHED-USER-TOKEN: "+token).Want(t, status) })
	}
	good, short := newToken(key, time.Hour), newToken(key, 5*time.Second)
	if n := send(good, 200); n < 1 {
		t.Fatalf("the first request cost %d connections", n)
	}
	for range 3 {
		if n := send(good, 200); n != 0 {
			t.Errorf("another request cost %d connections", n)
		}
	}
	for i := range 2 { // with two different tokens, because a refusal by the daemon is cached for a moment
		bad := newToken([]byte("12345678901234567890123456789012"), time.Hour+time.Duration(i)*time.Second)
		if n := send(bad, 401); n != 1 {
			t.Errorf("a forged token cost %d connections", n)
		}
	}
	if n := send(short, 200); n < 1 {
		t.Errorf("another token of the same user cost %d connections", n)
	}
	harness.Eventually(t, "the token expires", func() bool {
		// A session that is idle for longer is tried first, and a busy daemon may fail that.
		k.Request(c, "GET", path, "", "X-SCHED-USER-TOKEN: "+good).Want(t, 200)
		return k.Request(c, "GET", path, "", "X-SCHED-USER-TOKEN: "+short).Status == 401
	})
	if n := send(short, 401); n != 0 {
		t.Errorf("an expired token cost %d connections", n)
	}
	if n := send(good, 200); n != 0 {
		t.Errorf("the good token's session was lost: %d connections", n)
	}
	harness.Must(t, l.Daemons["scheddbd"].Stop())
	l.Up(l.DBD)
	if n := send(good, 200); n < 1 {
		t.Errorf("after the restart of the daemon, a request cost %d connections", n)
	}
	if n := send(good, 200); n != 0 {
		t.Errorf("the request after that cost %d connections", n)
	}
}
