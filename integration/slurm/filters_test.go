package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestFilters compares the filters of the gateway's lists with the options of
// squeue, sinfo and scontrol that mean the same. Each filter must select at
// least one entry, and must leave one out.
func TestFilters(t *testing.T) {
	m := freshCluster(t)
	m.populate(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	token, err := m.createToken("root")
	must(t, err)
	list := func(path, list, field string) []string {
		t.Helper()
		a, err := sendRequest(m.client(gatewaySocket), "GET", "/slurm/v0.0.45/"+path, "", "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		var body map[string]any
		if err := json.Unmarshal(a.body, &body); err != nil || a.status != http.StatusOK || fmt.Sprint(body["warnings"]) != "[]" {
			t.Fatalf("%s: status %d: %.300s", path, a.status, a.body)
		}
		var names []string
		records, _ := body[list].([]any)
		for _, r := range records {
			if fields := r.(map[string]any); len(fields) != 1 {
				t.Errorf("%s: %v has other fields", path, fields)
			}
			names = append(names, fmt.Sprint(r.(map[string]any)[field]))
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	command := func(line string) []string {
		t.Helper()
		names := strings.Fields(m.run(t, "root", "sh", "-c", line))
		slices.Sort(names)
		return slices.Compact(names)
	}
	squeue := func(options string) string { return "squeue -a -h -o %A " + options }
	all := " -t all"
	array, het := jobs["array"], jobs["het"]
	for _, tt := range []struct{ list, filter, command string }{
		{"jobs", "", squeue(all)},
		{"jobs", "users=alice", squeue("-u alice" + all)},
		{"jobs", "users=bob,root", squeue("-u bob,root" + all)},
		{"jobs", "account=optics", squeue("-A optics" + all)},
		{"jobs", "partition=fake", squeue("-p fake" + all)},
		{"jobs", "partition=fake,sets", squeue("-p fake,sets" + all)},
		{"jobs", "state=RUNNING", squeue("-t R")},
		{"jobs", "state=pending,suspended", squeue("-t PD,S")},
		{"jobs", "state=FAILED,CANCELLED", squeue("-t F,CA")},
		{"jobs", "job_name=held,steps", squeue("-n held,steps" + all)},
		{"jobs", "qos=quick", squeue("-q quick" + all)},
		{"jobs", "node=node1&state=RUNNING", squeue("-w node1 -t R")},
		{"jobs", "reservation=daily", squeue("-R daily" + all)},
		{"jobs", "job_id=" + jobs["held"] + "," + jobs["done"], squeue("-j " + jobs["held"] + "," + jobs["done"] + all)},
		{"jobs", "job_id=" + jobs["held"], squeue("-j " + jobs["held"] + all)},
		{"jobs", "job_id=" + array, squeue("-j " + array + all)},
		{"jobs", "job_id=" + array + "_1", squeue("-j " + array + "_1" + all)},
		{"jobs", "job_id=" + array + "_1," + jobs["held"], squeue("-j " + array + "_1," + jobs["held"] + all)},
		{"jobs", "job_id=" + het, squeue("-j " + het + all)},
		{"jobs", "users=alice&partition=debug&state=RUNNING", squeue("-u alice -p debug -t R")},
		{"nodes", "", "sinfo -a -h -N -o %N"},
		{"nodes", "node=n[01-02]", "sinfo -a -h -N -o %N -n n[01-02]"},
		{"nodes", "node=n03", "sinfo -a -h -N -o %N -n n03"},
		{"nodes", "partition=fake", "sinfo -h -N -o %N -p fake"},
		{"nodes", "state=DRAIN", "sinfo -a -h -N -o %N -t drain"},
		{"nodes", "state=DOWN", "sinfo -a -h -N -o %N -t down"},
		{"nodes", "feature=ssd", "scontrol -a -o show node | grep -E 'AvailableFeatures=([^ ]*,)?ssd[, ]' | sed 's/NodeName=\\([^ ]*\\).*/\\1/'"},
		{"partitions", "node=n03", `for p in $(sinfo -h -o %R); do scontrol show hostnames $(sinfo -h -p $p -o %N) 2>/dev/null | grep -qx n03 && echo $p; done; true`},
		{"reservations", "node=n03", "scontrol -o show res | grep -F 'Nodes=n[03-04]' | sed 's/ReservationName=\\([^ ]*\\).*/\\1/'"},
	} {
		if tt.list == "reservations" && m.release == "22.05" {
			continue // its populate can't make the reservation
		}
		field := map[string]string{"jobs": "job_id", "nodes": "name", "partitions": "name", "reservations": "name"}[tt.list]
		got, want := list(tt.list+"?fields="+field+"&"+tt.filter, tt.list, field), command(tt.command)
		if !slices.Equal(got, want) {
			t.Errorf("%s?%s: %v, but %q shows %v", tt.list, tt.filter, got, tt.command, want)
		}
		if rest := list(tt.list+"?fields="+field, tt.list, field); len(got) == 0 || tt.filter != "" && len(rest) <= len(got) {
			t.Errorf("%s?%s selects %d of %d entries", tt.list, tt.filter, len(got), len(rest))
		}
	}
}
