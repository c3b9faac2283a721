package slurm

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// outputPatterns are patterns for the output of a job. IN is a directory of the
// job's own.
func outputPatterns() (list []string) {
	for _, letter := range strings.Split("aAbjJnNrsStuxzZ%", "") {
		list = append(list, "o-%"+letter, "o-%5"+letter+".out")
	}
	return append(list, "", "plain", "IN/absolute-%j", "o%%j", "o%", "o%7", "o%13j", "o%3%j", `o\%j`, `IN/o\%j`, `o\\%j`, `o-%j\`, "7", "0", "o-%x-%u-%j", "%j/%a", "o-%10t%n", "./%j", "o %j")
}

// TestOutputFiles runs a job for each kind of pattern that slurmd knows, and
// checks that the paths in the job's records are those of its files.
func TestOutputFiles(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("not for this run: slurmd of 22.05 lacks some signs of file patterns")
	}
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	c := m.client(gatewaySocket)
	version := map[string]string{"22.05": "v0.0.45"}[m.release]
	if version == "" {
		version = newest[m.release]
	}
	type outputJob struct {
		pattern, directory, id, task string
	}
	var jobs []outputJob
	root := filepath.Join(m.root, "tmp/output")
	must(t, os.Mkdir(root, 0o777))
	must(t, os.Chmod(root, 0o777))
	for i, pattern := range outputPatterns() {
		for _, array := range []string{"", "17"} {
			if array != "" && !strings.ContainsAny(pattern, "aAbj") && pattern != "" {
				continue
			}
			directory := fmt.Sprintf("/tmp/output/%d%s", i, array)
			must(t, os.Mkdir(filepath.Join(m.root, directory), 0o777))
			must(t, os.Chmod(filepath.Join(m.root, directory), 0o777))
			id := m.submitWithOutput(t, directory, strings.Replace(pattern, "IN", directory, 1), array)
			if pattern == "%j/%a" {
				must(t, os.Mkdir(filepath.Join(m.root, directory, id), 0o777))
				must(t, os.Chmod(filepath.Join(m.root, directory, id), 0o777))
			}
			m.run(t, "root", "scontrol", "release", id)
			jobs = append(jobs, outputJob{pattern, directory, id, array})
		}
	}
	eventually(t, "all jobs have ended", func() bool {
		out, err := m.try("root", "squeue", "-h", "-u", "alice")
		return err == nil && out == ""
	})
	compared := 0
	for _, j := range jobs {
		var files []string
		must(t, filepath.WalkDir(filepath.Join(m.root, j.directory), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, strings.TrimPrefix(path, m.root))
			}
			return err
		}))
		// A backslash makes Slurm before 25.11 leave out the slash behind the directory.
		beside, err := filepath.Glob(filepath.Join(m.root, j.directory+"o*"))
		must(t, err)
		for _, path := range beside {
			files = append(files, strings.TrimPrefix(path, m.root))
		}
		for _, path := range []string{"/slurm/" + version + "/job/" + j.id, "/slurmdb/" + version + "/job/" + j.id} {
			a, err := sendRequest(c, "GET", path, "", "X-SLURM-USER-TOKEN: "+m.token)
			must(t, err)
			var answer struct {
				Jobs []struct {
					Standard string `json:"standard_output"`
					Expanded string `json:"stdout_expanded"`
				} `json:"jobs"`
			}
			if err := json.Unmarshal(a.body, &answer); err != nil || len(answer.Jobs) != 1 {
				t.Errorf("%s: status %d: %.300s", path, a.status, a.body)
				continue
			}
			shown := answer.Jobs[0].Expanded
			if shown == "" {
				shown = answer.Jobs[0].Standard
			}
			if strings.HasPrefix(path, "/slurmdb/") && (m.release == "22.05" || j.pattern == "" && m.release == "24.11") {
				continue // these records have no path
			}
			if len(files) == 0 && shown == "/dev/null" {
				files = []string{"/dev/null"}
			}
			if m.release == "24.11" && strings.Contains(j.pattern, "N") && len(files) == 1 {
				files[0] = strings.Replace(files[0], "head", "node1", 1) // slurmd before 25.11 uses the name of its machine
			}
			compared++
			if len(files) != 1 || filepath.Clean(shown) != filepath.Clean(files[0]) {
				t.Errorf("%q, task %q: %s shows %q; files: %q", j.pattern, j.task, path, shown, files)
			}
		}
	}
	t.Logf("%d paths compared", compared)
}

// submitWithOutput submits a held job of alice through our gateway.
func (m *machine) submitWithOutput(t *testing.T, directory, pattern, array string) string {
	t.Helper()
	job := map[string]any{"script": "#!/bin/sh\necho here\n", "name": "named", "hold": true, "current_working_directory": directory, "environment": []string{"PATH=/bin"}}
	if pattern != "" {
		job["standard_output"] = pattern
	}
	if array != "" {
		job["array"] = array
	}
	body, err := json.Marshal(map[string]any{"job": job})
	must(t, err)
	version := newest[m.release]
	if version == "" {
		version = "v0.0.45"
	}
	a, err := sendRequest(m.client(gatewaySocket), "POST", "/slurm/"+version+"/job/submit", string(body), "X-SLURM-USER-TOKEN: "+m.token)
	must(t, err)
	var answer struct {
		ID int `json:"job_id"`
	}
	if err := json.Unmarshal(a.body, &answer); err != nil || answer.ID == 0 {
		t.Fatalf("%s: status %d: %s", body, a.status, a.body)
	}
	return strconv.Itoa(answer.ID)
}
