package integration

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TestAccountingLists: what the shipped accounting daemon keeps is served in every version and both
// spellings, and so is that it has none of the rest.
func TestAccountingLists(t *testing.T) {
	l := newLab(t, func(l *lab) { l.restd.Env = append(l.restd.Env, "SCHEDRESTD_NAMES=both") })
	id := l.submit("exit 3", map[string]any{"name": "kept"})
	l.end(id)
	eventually(t, "the job is recorded as ended", func() bool {
		a := l.ask("GET", fmt.Sprintf("/scheddb/%s/job/%d", version, id), "")
		return a.status == 200 && a.get("jobs", 0, "state", "current", 0) == "FAILED"
	})
	for _, v := range []string{"v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"} {
		for _, segment := range []string{"scheddb", "slurmdb"} {
			ask := func(path string) answer { return l.ask("GET", "/"+segment+"/"+v+"/"+path, "") }
			for _, path := range []string{fmt.Sprintf("job/%d", id), "jobs", "jobs?users=" + l.Owner, fmt.Sprintf("jobs?job_name=kept&step=%d&state=FAILED&show_duplicates=true", id)} {
				a := ask(path).want(t, 200)
				if len(a.list("jobs")) != 1 || a.get("jobs", 0, "name") != "kept" || a.get("jobs", 0, "exit_code", "return_code", "number") != 3.0 || a.get("jobs", 0, "user") != l.Owner {
					t.Errorf("%s: %s", path, a.text)
				}
			}
			for _, path := range []string{"jobs?users=nobody-i-know", "jobs?state=RUNNING", "jobs?cluster=elsewhere", "jobs?end_time=1000"} {
				if a := ask(path).want(t, 200); len(a.list("jobs")) != 0 {
					t.Errorf("%s: %s", path, a.text)
				}
			}
			if a := ask("tres").want(t, 200); len(a.list("TRES")) != 4 || a.get("TRES", 1, "type") != "mem" {
				t.Errorf("tres: %s", a.text)
			}
			clusters := ask("clusters").want(t, 200)
			name := fmt.Sprint(clusters.get("clusters", 0, "name"))
			if len(clusters.list("clusters")) != 1 || ask("cluster/"+name).want(t, 200).get("clusters", 0, "name") != name {
				t.Errorf("clusters: %s", clusters.text)
			}
			for _, list := range []string{"accounts", "users", "associations", "qos"} {
				if a := ask(list).want(t, 200); a.list(list) == nil || len(a.list(list)) != 0 {
					t.Errorf("%s: %s", list, a.text)
				}
			}
			for path, list := range map[string]string{"account/lab": "accounts", "user/" + l.Owner: "users", "qos/normal": "qos", "cluster/elsewhere": "clusters", "job/4000000": "jobs"} {
				status := map[string]int{"scheddb": 404, "slurmdb": 200}[segment]
				if a := ask(path).want(t, status); a.list(list) == nil || len(a.list(list)) != 0 {
					t.Errorf("%s: %s", path, a.text)
				}
			}
			ask("job/x").want(t, 404)
			ask("jobs?qos=normal").want(t, 422)
			ask("jobs?association=1").want(t, 501)
			ask("jobs?state=DREAMING").want(t, 422)
		}
	}
}

// TestAccountingSessions: a session with the accounting daemon serves one token again and again; a forged token and one
// that has ended, of the same user, get nothing by it; and a daemon that was started anew is asked anew.
func TestAccountingSessions(t *testing.T) {
	l := newLab(t)
	k := l.tolled(t)
	c := k.client()
	defer c.CloseIdleConnections()
	key, err := os.ReadFile(l.Key())
	must(t, err)
	path := "/scheddb/" + version + "/tres"
	forged := func(key []byte, lasts time.Duration) string {
		now := time.Now()
		return forge(t, key, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(lasts).Unix(), "sun": l.Owner})
	}
	ask := func(token string, status int) (cost int64) {
		t.Helper()
		return k.dbd.cost(func() { k.ask(c, "GET", path, "", "X-SCHED-USER-TOKEN: "+token).want(t, status) })
	}
	good, short := forged(key, time.Hour), forged(key, 5*time.Second)
	if n := ask(good, 200); n < 1 {
		t.Fatalf("the first question cost %d connections", n)
	}
	for range 3 {
		if n := ask(good, 200); n != 0 {
			t.Errorf("one more cost %d connections", n)
		}
	}
	for i := range 2 { // the daemon's refusal of one token is remembered for a moment
		bad := forged([]byte("12345678901234567890123456789012"), time.Hour+time.Duration(i)*time.Second)
		if n := ask(bad, 401); n != 1 {
			t.Errorf("a forged token cost %d connections", n)
		}
	}
	if n := ask(short, 200); n < 1 {
		t.Errorf("another token of the same user cost %d connections", n)
	}
	eventually(t, "the token ends", func() bool {
		return k.ask(c, "GET", path, "", "X-SCHED-USER-TOKEN: "+short).status == 401
	})
	if n := ask(short, 401); n != 0 {
		t.Errorf("a token that has ended cost %d connections", n)
	}
	if n := ask(good, 200); n != 0 {
		t.Errorf("the good token's session was lost: %d connections", n)
	}
	must(t, l.daemons["scheddbd"].Stop())
	l.up(l.dbd)
	if n := ask(good, 200); n < 1 {
		t.Errorf("after the daemon was started anew: %d connections", n)
	}
	if n := ask(good, 200); n != 0 {
		t.Errorf("and then: %d connections", n)
	}
}
