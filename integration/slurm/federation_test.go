package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// startSecondCluster starts a controller of another cluster, lab2, in the machine,
// and makes a federation of both clusters. The cluster has no nodes that run jobs.
func (m *machine) startSecondCluster(t *testing.T) (conf string) {
	t.Helper()
	const dir, state = "/etc/slurm2", "/var/lib/slurm-state2"
	t.Cleanup(func() {
		m.try("root", "sh", "-c", "kill $(cat /run/slurm/slurmctld2.pid)")
		os.RemoveAll(filepath.Join(m.root, dir))
		os.RemoveAll(filepath.Join(m.root, state))
	})
	m.run(t, "root", "cp", "-a", "/etc/slurm", dir)
	m.run(t, "root", "install", "-d", "-o", "slurm", "-m", "0700", state)
	text, err := os.ReadFile(filepath.Join(m.root, "etc/slurm/slurm.conf"))
	must(t, err)
	conf = dir + "/slurm.conf"
	must(t, os.WriteFile(filepath.Join(m.root, conf), []byte(strings.NewReplacer("ClusterName=lab\n", "ClusterName=lab2\nSlurmctldPort=6827\nSlurmdPort=6828\n",
		"slurm-state", "slurm-state2", "slurmctld.", "slurmctld2.").Replace(string(text))), 0o644))
	manage := func(words string) {
		t.Helper()
		m.run(t, "slurm", append([]string{"sacctmgr", "-i", "-Q"}, strings.Fields(words)...)...)
	}
	manage("add cluster lab2")
	manage("add account physics cluster=lab2")
	manage("add user alice account=physics cluster=lab2")
	m.run(t, "slurm", "slurmctld", "-i", "-f", conf)
	eventually(t, "the second controller answers", func() bool {
		_, err := m.try("root", "env", "SLURM_CONF="+conf, "scontrol", "ping")
		return err == nil
	})
	manage("add federation fed clusters=lab,lab2")
	eventually(t, "the clusters are connected", func() bool {
		out, _ := m.try("root", "scontrol", "show", "federation")
		return strings.Contains(out, "PersistConnSend/Recv:Yes/Yes Synced:Yes")
	})
	return conf
}

// federated are the fields of a job that say where it may run.
type federated struct {
	ID     uint32 `json:"job_id"`
	Origin string `json:"federation_origin"`
	Active string `json:"federation_siblings_active"`
	Viable string `json:"federation_siblings_viable"`
}

// TestFederation checks jobs of a federation of two clusters: what the gateways
// of both clusters and Slurm's show of them, where a job may be submitted to, and
// which cluster changes it.
func TestFederation(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("slurmrestd 22.05 has none of the versions of the API")
	}
	second := m.startSecondCluster(t)
	m.reference(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	const otherSocket = "/run/gateway2.sock"
	m.start(t, "gateway2", otherSocket, []string{"SLURM_JWT=daemon"}, "/opt/gateway/schedrestd", "-v", "-f", second, "-u", "nobody", "-g", "nogroup", "unix:"+otherSocket)
	lab, lab2, reference := m.client(gatewaySocket), m.client(otherSocket), m.client(referenceSocket)

	const version = "/slurm/v0.0.42/"
	send := func(c *http.Client, method, path, body string, into any) (status int, text string) {
		t.Helper()
		a, err := sendRequest(c, method, path, body, "X-SLURM-USER-TOKEN: "+m.token)
		must(t, err)
		if into != nil {
			must(t, json.Unmarshal(a.body, into))
		}
		return a.status, string(a.body)
	}
	submit := func(extra string) (id uint32) {
		t.Helper()
		var answer struct {
			ID uint32 `json:"job_id"`
		}
		status, text := send(lab, "POST", version+"job/submit", `{"script": "#!/bin/sh\nsleep 60\n", "job": {"environment": ["PATH=/bin"], "current_working_directory": "/tmp", "hold": true`+extra+`}}`, &answer)
		if status != 200 || answer.ID>>26 != 1 { // the number begins with that of the cluster of origin
			t.Fatalf("submission: %d, job %d\n%s", status, answer.ID, text)
		}
		return answer.ID
	}
	anywhere, only := submit(""), submit(`, "clusters": "lab2"`)
	if status, text := send(lab, "POST", version+"job/submit", `{"script": "#!/bin/sh\n", "job": {"environment": ["PATH=/bin"], "current_working_directory": "/tmp", "clusters": "nosuch"}}`, nil); status != 422 || !strings.Contains(text, "7106") {
		t.Errorf("for an unknown cluster: %d\n%s", status, text)
	}

	want := []federated{{anywhere, "lab", "lab", "lab,lab2"}, {only, "lab", "", "lab2"}}
	for name, c := range map[string]*http.Client{"the gateway": lab, "slurmrestd": reference} {
		var answer struct{ Jobs []federated }
		send(c, "GET", version+"jobs/", "", &answer)
		if diff := cmp.Diff(want, answer.Jobs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	job := fmt.Sprint(version, "job/", anywhere)
	if status, text := send(lab, "GET", job, "", nil); status != 200 {
		t.Errorf("one job: %d\n%s", status, text)
	}
	for _, request := range []struct{ method, body string }{{"POST", `{"comment": "x"}`}, {"DELETE", ""}} {
		status, text := send(lab2, request.method, job, request.body, nil)
		if status != 501 || !strings.Contains(text, `to the cluster \"lab\"`) {
			t.Errorf("%s to the other cluster: %d\n%s", request.method, status, text)
		}
		if status, text := send(lab, request.method, job, request.body, nil); status != 200 {
			t.Errorf("%s to the cluster of origin: %d\n%s", request.method, status, text)
		}
	}
	if status, text := send(lab, "GET", version+"jobs/?flags=FEDERATION", "", nil); status != 200 || !strings.Contains(text, "FEDERATION has no effect") {
		t.Errorf("flags=FEDERATION: %d\n%s", status, text)
	}

	var clusters struct{ Clusters []struct{ Name string } }
	if send(lab2, "GET", "/slurmdb/v0.0.42/clusters/?federation=fed&cluster=lab2", "", &clusters); len(clusters.Clusters) != 1 || clusters.Clusters[0].Name != "lab2" {
		t.Errorf("clusters %+v", clusters)
	}
}
