// The program dropped does with a gateway what clients of v0.0.42 do: it reads
// lists, and submits, changes and cancels a job. The package client is
// generated from the document of Slurm's own gateway. SOCKET is the gateway's
// socket, and TOKEN is a token.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"schedrestd/tools/lint/openapi/client"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	c := connect(os.Getenv("TOKEN"))

	ping, err := c.SlurmV0042GetPingWithResponse(ctx)
	check("ping", err, func() bool { return len(ping.JSON200.Pings) == 1 && *ping.JSON200.Pings[0].Pinged == "UP" })
	nodes, err := c.SlurmV0042GetNodesWithResponse(ctx, nil)
	check("nodes", err, func() bool { return len(nodes.JSON200.Nodes) > 1 && *nodes.JSON200.Nodes[0].Cpus > 0 })
	node, err := c.SlurmV0042GetNodeWithResponse(ctx, *nodes.JSON200.Nodes[0].Name, nil)
	check("node", err, func() bool { return len(node.JSON200.Nodes) == 1 && len(*node.JSON200.Nodes[0].State) > 0 })
	partitions, err := c.SlurmV0042GetPartitionsWithResponse(ctx, nil)
	check("partitions", err, func() bool { return len(partitions.JSON200.Partitions) > 0 })
	diag, err := c.SlurmV0042GetDiagWithResponse(ctx)
	check("diag", err, func() bool { return *diag.JSON200.Statistics.JobStatesTs.Number > 0 })

	submitted, err := c.SlurmV0042PostJobSubmitWithResponse(ctx, client.V0042JobSubmitReq{Job: &client.V0042JobDescMsg{
		Name: value("old"), Script: value("#!/bin/sh\nexec sleep 1000\n"), Partition: value(os.Getenv("PARTITION")),
		Environment: &client.V0042StringArray{"PATH=/usr/bin:/bin"}, CurrentWorkingDirectory: value("/tmp"),
		StandardOutput: value("/dev/null"), TimeLimit: &client.V0042Uint32NoValStruct{Set: value(true), Number: value(int32(7))},
	}})
	check("submit", err, func() bool { return *submitted.JSON200.JobId > 0 })
	number := *submitted.JSON200.JobId
	id := fmt.Sprint(number)
	jobs, err := c.SlurmV0042GetJobsWithResponse(ctx, nil)
	check("jobs", err, func() bool {
		return slices.ContainsFunc(jobs.JSON200.Jobs, func(j client.V0042JobInfo) bool { return *j.JobId == number && *j.Name == "old" })
	})
	updated, err := c.SlurmV0042PostJobWithResponse(ctx, id, client.V0042JobDescMsg{Comment: value("changed")})
	check("update", err, func() bool { return updated.JSON200 != nil && len(*updated.JSON200.Errors) == 0 })
	job, err := c.SlurmV0042GetJobWithResponse(ctx, id, nil)
	check("job", err, func() bool {
		return *job.JSON200.Jobs[0].Comment == "changed" && *job.JSON200.Jobs[0].TimeLimit.Number == 7
	})
	cancelled, err := c.SlurmV0042DeleteJobWithResponse(ctx, id, nil)
	check("cancel", err, func() bool { return len(*cancelled.JSON200.Errors) == 0 })
	await("the job is cancelled", func() bool {
		j, err := c.SlurmV0042GetJobWithResponse(ctx, id, nil)
		return err == nil && j.JSON200 != nil && slices.Contains(*j.JSON200.Jobs[0].JobState, "CANCELLED")
	})
	again, err := c.SlurmV0042DeleteJobWithResponse(ctx, id, nil)
	check("cancel again", err, func() bool { return *again.JSON200.Status[0].Error.Code == 2021 })
	await("the job is recorded", func() bool {
		j, err := c.SlurmdbV0042GetJobWithResponse(ctx, id)
		return err == nil && j.JSON200 != nil && len(j.JSON200.Jobs) == 1 && *j.JSON200.Jobs[0].Name == "old"
	})

	records, err := c.SlurmdbV0042GetJobsWithResponse(ctx, &client.SlurmdbV0042GetJobsParams{JobName: value("old")})
	check("recorded jobs", err, func() bool { return len(records.JSON200.Jobs) > 0 })
	accounts, err := c.SlurmdbV0042GetAccountsWithResponse(ctx, nil)
	check("accounts", err, func() bool { return len(accounts.JSON200.Accounts) > 0 })
	associations, err := c.SlurmdbV0042GetAssociationsWithResponse(ctx, nil)
	check("associations", err, func() bool { return len(associations.JSON200.Associations) > 0 })
	qos, err := c.SlurmdbV0042GetQosWithResponse(ctx, nil)
	check("QOS", err, func() bool { return len(qos.JSON200.Qos) > 0 })
	users, err := c.SlurmdbV0042GetUsersWithResponse(ctx, nil)
	check("users", err, func() bool { return len(users.JSON200.Users) > 0 })

	unknown, err := c.SlurmV0042GetJobWithResponse(ctx, "999999", nil)
	check("unknown job", err, func() bool {
		return unknown.StatusCode() == http.StatusNotFound && *(*unknown.JSONDefault.Errors)[0].ErrorNumber == 2017
	})
	none, err := c.SlurmV0042GetNodeWithResponse(ctx, "none", nil)
	check("unknown node", err, func() bool {
		return strings.HasPrefix(*(*none.JSON200.Errors)[0].Description, "Failure to query node ")
	})
	refused, err := connect("a.b.c").SlurmV0042GetJobsWithResponse(ctx, nil)
	check("bad token", err, func() bool { return refused.StatusCode() == http.StatusUnauthorized })
}

func connect(token string) *client.ClientWithResponses {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", os.Getenv("SOCKET"))
	}}
	c, err := client.NewClientWithResponses("http://gateway", client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("X-SLURM-USER-TOKEN", token)
			return nil
		}))
	check("client", err, func() bool { return true })
	return c
}

func value[T any](v T) *T { return &v }

// check ends the program unless there is no error and right returns true. If an
// answer lacks a field that right uses, the program panics.
func check(operation string, err error, right func() bool) {
	if err != nil || !right() {
		fmt.Println(operation+":", err)
		os.Exit(1)
	}
}

// await waits until condition returns true.
func await(event string, condition func() bool) {
	for start := time.Now(); !condition(); time.Sleep(200 * time.Millisecond) {
		if time.Since(start) > 2*time.Minute {
			fmt.Println("did not happen:", event)
			os.Exit(1)
		}
	}
}
