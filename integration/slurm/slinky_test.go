package slurm

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/vishvananda/netns"

	"schedrestd/integration/harness"
	"schedrestd/integration/pod"
)

// slinky starts the image in the pod of Slinky, with this cluster's daemons
// behind the Services. Settings are lines for the pod's slurm.conf.
func (m *machine) slinky(t *testing.T, restricted bool, settings ...string) (*pod.Pod, *pod.Cluster) {
	t.Helper()
	s, k := pod.NewSlinky(t), pod.NewCluster(t)
	network, err := netns.GetFromPath("/proc/" + m.first + "/ns/net")
	must(t, err)
	t.Cleanup(func() { network.Close() })
	for name, port := range map[string]int{"slurm-controller": 6817, "slurm-accounting": 6819} {
		k.Service(t, s.Services[name], harness.DialFrom(network, "tcp", fmt.Sprintf("127.0.0.1:%d", port)))
	}
	s.SlurmConf += strings.Join(settings, "\n") + "\n"
	return s.Start(t, k, pod.BuildImage(t), restricted), k
}

// slinkyCluster makes the cluster one like Slinky's: auth/slurm, no munge, and
// users without associations.
func slinkyCluster(t *testing.T) *machine {
	t.Helper()
	m := freshCluster(t)
	if m.release == "22.05" {
		notForThisRun(t, "auth/slurm is new in 23.11, and Slinky needs 25.05")
	}
	file := filepath.Join(m.root, "etc/slurm/slurm.conf")
	text, err := os.ReadFile(file)
	must(t, err)
	text = regexp.MustCompile(`(?m)^AccountingStorageEnforce=.*\n`).ReplaceAll(text, nil)
	must(t, os.WriteFile(file, text, 0)) // keeps owner and mode
	m.useAuthSlurm(t)
	m.changeConf(t, map[string]string{"AuthInfo": "use_client_ids"})
	return m
}

// TestSlinky makes the requests of Slinky's operator, with its tokens, through
// the image in Slinky's pod. Neither the pod nor the image knows a user of the
// cluster, not even SlurmUser.
func TestSlinky(t *testing.T) {
	m := slinkyCluster(t)
	version := "/slurm/v0.0.44"
	if m.release == "24.11" {
		version = "/slurm/v0.0.42"
	}
	for _, restricted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restricted %v", restricted), func(t *testing.T) {
			p, _ := m.slinky(t, restricted)
			send := func(user, method, path, body string) string {
				t.Helper()
				a, err := sendRequest(p.Client, method, path, body, "X-SLURM-USER-TOKEN: "+m.sign(t, pod.Claims(user)))
				must(t, err)
				if a.status != http.StatusOK {
					t.Errorf("%s %s: status %d: %.600s", method, path, a.status, a.body)
				}
				return string(a.body)
			}
			node := func() string { return m.run(t, "root", "scontrol", "-o", "show", "node", "node1") }
			for _, path := range []string{"/nodes/", "/node/node1", "/jobs/", "/partitions/", "/reservations/", "/ping/", "/diag/", "/reconfigure/"} {
				send("slurm", "GET", version+path, "")
			}
			send("slurm", "GET", "/slurmdb"+strings.TrimPrefix(version, "/slurm")+"/accounts/", "")
			for _, tt := range []struct{ body, want string }{
				{`{"comment": "{\"namespace\":\"slurm\"}"}`, `Comment=\{"namespace":"slurm"\}`},
				{`{"state": ["DRAIN"], "reason": "slurm-operator: test"}`, `Reason=slurm-operator: test \[slurm@`},
				{`{"state": ["UNDRAIN"], "reason": ""}`, `State=IDLE(\+NOT_RESPONDING)? `},
			} {
				send("slurm", "POST", version+"/node/node1", tt.body)
				if got := node(); !regexp.MustCompile(tt.want).MatchString(got) {
					t.Errorf("%s: no %q in\n%s", tt.body, tt.want, got)
				}
			}
			output := fmt.Sprintf("/tmp/slinky-%v", restricted)
			a, err := sendRequest(p.Client, "POST", version+"/job/submit", submission(output), "X-SLURM-USER-TOKEN: "+m.sign(t, pod.Claims("alice")))
			must(t, err)
			var job struct {
				ID int `json:"job_id"`
			}
			if err := json.Unmarshal(a.body, &job); err != nil || job.ID == 0 {
				t.Fatalf("status %d, %v: %s", a.status, err, a.body)
			}
			m.checkRanAs(t, fmt.Sprint(job.ID), "alice", 20001, output)
		})
	}
}

// TestSlinkyIdentities checks that users whom only their tokens describe are
// served in Slinky's pod, if the cluster trusts these tokens, beside the
// operator, whose token has only a name.
func TestSlinkyIdentities(t *testing.T) {
	if cluster.release == "24.11" || cluster.release == "22.05" {
		notForThisRun(t, "use_jwt_client_ids is new in 26.05")
	}
	m := slinkyCluster(t)
	m.changeConf(t, map[string]string{"AuthAltParameters": "jwt_key=/etc/slurm/jwt_hs256.key,use_jwt_client_ids"})
	p, _ := m.slinky(t, true, "AuthAltParameters=jwt_key=/etc/slurm/jwt.key,use_jwt_client_ids")
	identity := func(user string, uid int) jwt.MapClaims {
		claims := pod.Claims(user)
		claims["uid"], claims["gid"] = uid, uid
		claims["id"] = map[string]any{"name": user, "gecos": "Erna", "dir": "/tmp", "shell": "/bin/sh", "groups": map[string]int{user: uid}}
		return claims
	}
	a, err := sendRequest(p.Client, "GET", "/slurm/v0.0.44/nodes/", "", "X-SLURM-USER-TOKEN: "+m.sign(t, pod.Claims("slurm")))
	if err != nil || a.status != http.StatusOK {
		t.Errorf("the operator: %v, status %d: %.600s", err, a.status, a.body)
	}
	for _, tt := range []struct {
		name   string
		claims jwt.MapClaims
		status int
	}{
		{"a user whom nobody else knows", identity("erna", 70001), http.StatusOK},
		{"nobody's uid", identity("erna", 65534), http.StatusUnauthorized},
	} {
		a, err := sendRequest(p.Client, "POST", "/slurm/v0.0.44/job/submit", submission("/tmp/slinky-erna"), "X-SLURM-USER-TOKEN: "+m.sign(t, tt.claims))
		must(t, err)
		if a.status != tt.status {
			t.Errorf("%s: status %d: %.600s", tt.name, a.status, a.body)
		}
		if tt.status == http.StatusOK {
			var job struct {
				ID int `json:"job_id"`
			}
			must(t, json.Unmarshal(a.body, &job))
			if got := m.run(t, "root", "scontrol", "-o", "show", "job", fmt.Sprint(job.ID)); !strings.Contains(got, "(70001) GroupId=") {
				t.Errorf("job of another user: %s", got)
			}
		}
	}
}

// slinkyClientVariable names a clone of github.com/SlinkyProject/slurm-client,
// release v1.2.1.
const slinkyClientVariable = "SLINKY_CLIENT"

// slinkySuite replaces the part of the client's tests that starts a cluster with
// Docker.
const slinkySuite = `package client

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	ctx, cancel   = context.WithCancel(context.Background())
	restapiServer = os.Getenv("SLINKY_SERVER")
	slurmJwt      = os.Getenv("SLINKY_TOKEN")
)

func TestClient(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Client Suite")
}
`

// TestSlinkyClient runs the tests of Slinky's Go client before Slurm's gateway,
// and before ours in Slinky's pod. What succeeds there must succeed here.
func TestSlinkyClient(t *testing.T) {
	source := os.Getenv(slinkyClientVariable)
	if source == "" {
		notForThisRun(t, slinkyClientVariable+" names no clone of Slinky's Go client")
	}
	m := slinkyCluster(t)
	program := buildSlinkyClient(t, source)
	m.reference(t)
	p, k := m.slinky(t, true)
	k.Service(t, 6821, func() (net.Conn, error) { return net.Dial("unix", filepath.Join(m.root, referenceSocket)) })
	versions := []string{"v0044", "v0045", "v0043", "v0042"} // the operator's first
	if m.release == "24.11" {
		versions = []string{"v0042"}
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			theirs := runSlinkyClient(t, m, k, program, version, k.ServiceURL(6821))
			ours := runSlinkyClient(t, m, k, program, version, p.URL)
			counts := map[string]int{}
			for name, want := range theirs {
				got := ours[name]
				counts["theirs "+want.State]++
				counts["ours "+got.State]++
				switch {
				case want.State == "passed" && got.State != "passed":
					t.Errorf("%s: %s: %s", name, got.State, got.Failure.Message)
				case want.State != "passed":
					t.Logf("%s: theirs %s: %.300s; ours %s: %.300s", name, want.State, want.Failure.Message, got.State, got.Failure.Message)
				}
			}
			t.Log(counts)
			if counts["theirs passed"] == 0 || len(ours) != len(theirs) {
				t.Errorf("%d and %d tests", len(theirs), len(ours))
			}
		})
	}
}

// buildSlinkyClient builds the tests, with the names of this cluster's node and
// partition.
func buildSlinkyClient(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(source)))
	tests, err := filepath.Glob(filepath.Join(dir, "pkg/client/client_v*_test.go"))
	must(t, err)
	for _, path := range tests {
		text, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, []byte(strings.NewReplacer(`"slurmd"`, `"node1"`, `"all"`, `"debug"`).Replace(string(text))), 0o644))
	}
	must(t, os.WriteFile(filepath.Join(dir, "pkg/client/client_suite_test.go"), []byte(slinkySuite), 0o644))
	program := filepath.Join(dir, "client.test")
	cmd := exec.Command("go", "test", "-c", "-o", program, "./pkg/client")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// spec is the outcome of one of the client's tests.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeText, State     string
	Failure                 struct{ Message string }
}

func runSlinkyClient(t *testing.T, m *machine, k *pod.Cluster, program, version, server string) map[string]spec {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.Command("nsenter", "--net="+k.Node, program, "-test.run=^TestClient$", "-ginkgo.focus=Client "+version, "-ginkgo.json-report="+report)
	cmd.Env = append(os.Environ(), "SLINKY_SERVER="+server, "SLINKY_TOKEN="+m.sign(t, pod.Claims("slurm")))
	out, err := cmd.CombinedOutput()
	text, readErr := os.ReadFile(report)
	if readErr != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var suites []struct{ SpecReports []spec }
	must(t, json.Unmarshal(text, &suites))
	found := map[string]spec{}
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			if s.LeafNodeText != "" && s.State != "skipped" {
				found[strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), ", ")] = s
			}
		}
	}
	return found
}
