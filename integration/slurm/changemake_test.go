package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// newest is the newest version of the API that Slurm's gateway of a release
// serves.
var newest = map[string]string{"24.11": "v0.0.42", "26.05": "v0.0.45"}

var makeAccounts = func(c *changeForms, names []string) {
	c.t.Helper()
	c.mustPost("/slurmdb/"+newest[c.m.release]+"/accounts_association/", `{"association_condition": {"accounts": `+quoted(names)+`, "clusters": ["lab"]}, "account": {"description": "d", "organization": "o"}}`)
}

// makeUsers makes users with an association of the account physics.
var makeUsers = func(c *changeForms, names []string) {
	c.t.Helper()
	c.mustPost("/slurmdb/"+newest[c.m.release]+"/users_association/", `{"association_condition": {"users": `+quoted(names)+`, "accounts": ["physics"], "clusters": ["lab"]}, "user": {}}`)
}

// makeUsersNamed returns a function that makes a user for each name, with
// prefix before the name.
func makeUsersNamed(prefix string) func(*changeForms, []string) {
	return func(c *changeForms, names []string) {
		c.t.Helper()
		var users []string
		for _, name := range names {
			users = append(users, prefix+name)
		}
		makeUsers(c, users)
	}
}

func quoted(names []string) string {
	text, _ := json.Marshal(names)
	return string(text)
}

// makeJobs submits held jobs.
func makeJobs(c *changeForms, names []string) {
	c.t.Helper()
	for _, name := range names {
		body := strings.ReplaceAll(`{"script": "#!/bin/sh\ntrue\n", "job": {"name": "NAME", "hold": true, "partition": "sets", "current_working_directory": "/tmp", "standard_output": "/dev/null", "environment": ["A=1"], "comment": "c", "admin_comment": "a", "extra": "e",
			"licenses": "matlab:1", "constraints": "fake", "time_limit": 30, "nice": 5, "minimum_cpus": 4, "tasks": 2, "memory_per_node": 200, "excluded_nodes": ["n06"], "tres_per_node": "gres/gpu:1", "mail_type": ["END"], "mail_user": "root", "required_switches": 2, "requeue": true}}`, "NAME", name)
		a, err := sendRequest(c.clients[1], "POST", "/slurm/"+newest[c.m.release]+"/job/submit", body, "X-SLURM-USER-TOKEN: "+c.token)
		must(c.t, err)
		c.number(name, numberIn(c.t, a.body))
	}
}

// scontrol returns a function that makes objects with a command.
func scontrol(command string) func(*changeForms, []string) {
	return func(c *changeForms, names []string) {
		c.t.Helper()
		var script strings.Builder
		fmt.Fprintln(&script, "set -e")
		for _, name := range names {
			fmt.Fprintln(&script, "scontrol "+strings.ReplaceAll(command, "NAME", name))
		}
		c.m.run(c.t, "root", "sh", "-c", script.String())
	}
}

// post returns a function that makes objects with one request to our gateway.
// The request is a list of elements, one for each object.
func post(path, list, element string) func(*changeForms, []string) {
	return func(c *changeForms, names []string) {
		c.t.Helper()
		var elements []string
		for _, name := range names {
			elements = append(elements, strings.ReplaceAll(element, "NAME", name))
		}
		c.mustPost(strings.Replace(path, "/slurmdb/", "/slurmdb/"+newest[c.m.release]+"/", 1), `{"`+list+`": [`+strings.Join(elements, ", ")+`]}`)
	}
}

func (c *changeForms) mustPost(path, body string) {
	c.t.Helper()
	a, err := sendRequest(c.clients[1], "POST", path, body, "X-SLURM-USER-TOKEN: "+c.token)
	must(c.t, err)
	if a.status != http.StatusOK {
		c.t.Fatalf("%s with %.500s: status %d: %s", path, body, a.status, remarks(a.body))
	}
}

// delete removes an object, if it exists. Our gateway refuses some of the names
// that slurmrestd stores.
func (c *changeForms) delete(path string) {
	a, err := sendRequest(c.clients[1], "DELETE", path, "", "X-SLURM-USER-TOKEN: "+c.token)
	must(c.t, err)
	if a.status == http.StatusOK {
		return
	}
	if _, err := sendRequest(c.clients[0], "DELETE", path, "", "X-SLURM-USER-TOKEN: "+c.token); err != nil {
		c.revive(0) // clean tries again, and then makes the cluster again
	}
}

// inOrder returns a function that calls several functions that make objects.
func inOrder(list ...func(*changeForms, []string)) func(*changeForms, []string) {
	return func(c *changeForms, names []string) {
		c.t.Helper()
		for _, f := range list {
			f(c, names)
		}
	}
}
