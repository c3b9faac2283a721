package slurm

import (
	"fmt"
	"regexp"
	"time"

	"schedrestd/integration/slurm/variant"
)

// commonHints name values that exist in the cluster, by the names of fields.
var commonHints = []variant.Hint{
	hint(`(^|[.])(account|accounts|defaultaccount|parent|parent_account)$`, `"nosuchaccount"`, `"physics"`, `"optics"`),
	hint(`(^|[.])(user|user_name|users)$`, `"nosuchuser"`, `"alice"`, `"bob"`),
	hint(`(^|[.])(partition|partitions)$`, `"nosuchpartition"`, `"debug"`, `"fake"`),
	hint(`(^|[.])(qos|qoslevel|defaultqos)$|preempt[.]list$`, `"nosuchqos"`, `"quick"`, `"normal"`),
	hint(`(^|[.])(cluster|clusters)$`, `"nosuchcluster"`, `"lab"`),
	hint(`(^|[.])wckey$`, `"nosuchwckey"`, `"kNAME"`),
}

func hint(field, unknown string, known ...string) variant.Hint {
	return variant.Hint{Field: regexp.MustCompile(field), Known: known, Unknown: unknown}
}

// elementHint describes the elements of lists of objects.
func elementHint(field, element, unknown string, others ...string) variant.Hint {
	return variant.Hint{Field: regexp.MustCompile(field), Element: element, Unknown: unknown, Known: others}
}

var tresHints = []variant.Hint{
	hint(`\[\][.]type$`, `"nosuchtype"`, `"mem"`, `"node"`),
	elementHint(`(tres|total|minutes|active|job|node|user|account|qos|TRES|grptres\w*|maxtres\w*)$`, `{"type": "cpu", "count": 9}`, `{"type": "gres", "name": "nosuchgres", "count": 3}`,
		`{"type": "gres", "name": "gpu", "count": 2}`, `{"type": "mem", "count": -1}`),
}

// targets are the operations.
var targets = []target{
	{method: "POST", path: "/slurmdb/qos/", base: `{"qos": [{"name": "NAME"}]}`, shows: []show{showsQOS, listedBy(0, "/slurmdb/qos/", "qos"), listedBy(1, "/slurmdb/qos/", "qos")},
		hints: onlyLists(tresHints, `tres`), situations: []situation{
			{name: "new QOS"},
			{name: "existing QOS", make: post("/slurmdb/qos/", "qos", `{"name": "NAME", "description": "d", "priority": {"set": true, "number": 33}, "flags": ["DENY_LIMIT", "NO_DECAY"], "usage_factor": {"set": true, "number": 2.5},
				"limits": {"grace_time": 60, "factor": {"set": true, "number": 0.5}, "min": {"tres": {"per": {"job": [{"type": "cpu", "count": 1}]}}},
				"max": {"wall_clock": {"per": {"job": {"set": true, "number": 90}}}, "tres": {"total": [{"type": "cpu", "count": 50}, {"type": "mem", "count": 1000}], "per": {"user": [{"type": "cpu", "count": 16}]}},
				"jobs": {"active_jobs": {"per": {"user": {"set": true, "number": 7}}}}}}, "preempt": {"list": ["quick"], "mode": ["REQUEUE"], "exempt_time": {"set": true, "number": 60}}}`)},
		}},
	{method: "POST", path: "/slurmdb/accounts/", base: `{"accounts": [{"name": "NAME", "description": "one", "organization": "two"}]}`, shows: showsAccounts,
		hints: []variant.Hint{elementHint(`coordinators$`, `{"name": "alice"}`, `{"name": "nosuchuser"}`, `{"name": "bob"}`), hint(`coordinators.*[.]name$`, `"nosuchuser"`, `"alice"`, `"bob"`),
			elementHint(`associations$`, `{"account": "NAME", "cluster": "lab", "user": ""}`, "")},
		situations: []situation{{name: "new account"}, {name: "existing account", make: inOrder(makeAccounts, post("/slurmdb/accounts/", "accounts", `{"name": "NAME", "description": "d", "organization": "o", "coordinators": [{"name": "bob"}]}`))}}},
	{method: "POST", path: "/slurmdb/accounts_association/", base: `{"association_condition": {"accounts": ["NAME"]}}`, shows: showsAccounts, hints: tresHints,
		situations: []situation{{name: "new account"}, {name: "existing account", make: makeAccounts}}},
	{method: "POST", path: "/slurmdb/users/", base: `{"users": [{"name": "NAME"}]}`, shows: showsUsers,
		hints: []variant.Hint{elementHint(`wckeys$`, `{"name": "kNAME", "cluster": "lab", "user": "NAME"}`, `{"name": "kNAME", "cluster": "nosuchcluster", "user": "NAME"}`, `{"name": "lNAME", "cluster": "lab", "user": "NAME"}`),
			elementHint(`associations$`, `{"account": "optics", "cluster": "lab", "user": "NAME"}`, ""), elementHint(`coordinators$`, `{"name": "optics"}`, ""), hint(`old_name$`, `"nosuchuser"`, `"oNAME"`), hint(`wckeys.*[.]name$`, "", `"mNAME"`), hint(`wckeys.*[.]user$`, `"nosuchuser"`, `"NAME"`)},
		situations: []situation{{name: "new user"}, {name: "existing user", make: makeUsers}, {name: "renamed user", base: `{"users": [{"name": "NAME", "old_name": "oNAME"}]}`, make: makeUsersNamed("o")}}},
	{method: "POST", path: "/slurmdb/users_association/", base: `{"association_condition": {"users": ["NAME"], "accounts": ["optics"]}, "user": {}}`, shows: showsUsers, hints: append([]variant.Hint{hint(`[.]wckeys$`, "", `"kNAME"`, `"lNAME"`), hint(`[.]users$`, `"nosuchNAME"`, `"vNAME"`, `"wNAME"`), hint(`[.]clusters$`, `"nosuchcluster"`, `"lab"`)}, tresHints...),
		situations: []situation{{name: "new user"}, {name: "existing user", make: makeUsers}}},
	{method: "POST", path: "/slurmdb/associations/", base: `{"associations": [{"account": "NAME", "cluster": "lab", "user": "uNAME"}]}`, shows: showsAssociations, hints: onlyLists(tresHints, `tres`),
		situations: []situation{
			{name: "new association", make: inOrder(makeAccounts, makeUsersNamed("u"))},
			{name: "existing association", make: inOrder(makeAccounts, makeUsersNamed("u"), post("/slurmdb/associations/", "associations", `{"account": "NAME", "cluster": "lab", "user": "uNAME", "shares_raw": 5, "comment": "c", "priority": {"set": true, "number": 21},
				"max": {"jobs": {"active": {"set": true, "number": 4}, "per": {"wall_clock": {"set": true, "number": 77}}}, "tres": {"total": [{"type": "cpu", "count": 8}, {"type": "mem", "count": 1000}], "group": {"minutes": [{"type": "cpu", "count": 600}]}}}, "qos": ["quick", "normal"], "default": {"qos": "quick"}}`))},
			{name: "association of an account", base: `{"associations": [{"account": "NAME", "cluster": "lab", "user": ""}]}`, make: makeAccounts},
		}},
	{method: "POST", path: "/slurmdb/wckeys/", base: `{"wckeys": [{"name": "kNAME", "cluster": "lab", "user": "NAME"}]}`, shows: showsUsers, hints: []variant.Hint{hint(`user$`, `"nosuchuser"`, `"NAME"`)},
		situations: []situation{{name: "new key", make: makeUsers}, {name: "existing key", make: inOrder(makeUsers, post("/slurmdb/wckeys/", "wckeys", `{"name": "kNAME", "cluster": "lab", "user": "NAME"}`))}}},
	{method: "POST", path: "/slurmdb/clusters/", base: `{"clusters": [{"name": "NAME"}]}`, shows: []show{sacctmgr("cluster", "cluster,classification,flags,federation,features", "Cluster"), listedBy(0, "/slurmdb/clusters/", "clusters"), listedBy(1, "/slurmdb/clusters/", "clusters")},
		hints: tresHints, perBatch: 10, sample: 4, situations: []situation{{name: "new cluster"}}},
	{method: "POST", path: "/slurmdb/tres/", base: `{"TRES": [{"type": "gres", "name": "NAME", "id": 0, "count": 0}]}`, shows: []show{sacctmgr("tres", "type,name", "")}, situations: []situation{{name: "new TRES"}}},

	{method: "POST", path: "/slurm/nodes/", base: `{"name": ["NAME"], "extra": "e"}`, shows: showsNodes, hints: nodeHints, perBatch: 20, situations: []situation{{name: "node", make: makeNodes}}},
	{method: "POST", path: "/slurm/node/{node_name}", request: "/slurm/node/NAME", base: `{}`, shows: showsNodes, hints: nodeHints, perBatch: 20, situations: []situation{{name: "no other field", make: makeNodes}, {name: "another field", base: `{"extra": "e"}`, make: makeNodes}}},
	{method: "POST", path: "/slurm/new/node/", base: `{"node_conf": "NodeName=NAME NodeAddr=127.1.3.1 CPUs=2 State=CLOUD"}`, shows: showsNodes,
		hints: []variant.Hint{hint(`node_conf`, `"NodeName=NAME CPUs=2"`, `"NodeName=NAME CPUs=4 RealMemory=2000 State=CLOUD Weight=3"`, `"NodeName=NAME State=FUTURE"`)}, situations: []situation{{name: "new node"}}},
	{method: "POST", path: "/slurm/partitions/", base: `{"partitions": [{"name": "NAME"}]}`, shows: showsPartitions, hints: partitionHints, situations: []situation{
		{name: "new partition", base: `{"partitions": [{"name": "NAME", "nodes": {"configured": "n02"}}]}`},
		{name: "existing partition", base: `{"partitions": [{"name": "NAME", "grace_time": 31}]}`, make: scontrol("create PartitionName=NAME Nodes=n01 MaxTime=60 DefaultTime=10 MinNodes=1 MaxNodes=3 AllowAccounts=physics AllowQos=normal OverSubscribe=YES:2 PriorityTier=3 Hidden=YES DefMemPerCPU=100 MaxMemPerCPU=900 GraceTime=30 QOS=quick Alternate=debug")},
	}},
	{method: "POST", path: "/slurm/reservation", base: `{"name": "NAME"}`, shows: showsReservations, hints: reservationHints, situations: []situation{
		{name: "new reservation", base: `{"name": "NAME", ` + newReservation},
		{name: "existing reservation", base: `{"name": "NAME", "comment": "other"}`, make: makeReservations},
	}},
	{method: "POST", path: "/slurm/reservations/", base: `{"reservations": [{"name": "NAME"}]}`, shows: showsReservations, hints: reservationHints, situations: []situation{
		{name: "new reservation", base: `{"reservations": [{"name": "NAME", ` + newReservation + `]}`},
		{name: "existing reservation", base: `{"reservations": [{"name": "NAME", "comment": "other"}]}`, make: makeReservations},
	}},
	{method: "POST", path: "/slurm/job/{job_id}", request: "/slurm/job/OWNJOB", base: `{}`, shows: showsJobs, hints: jobHints, situations: []situation{{name: "held job", base: `{"admin_comment": "other"}`, make: makeJobs}, {name: "held job, no other field", make: makeJobs}}},
	{method: "POST", path: "/slurm/job/submit", base: `{"script": "#!/bin/sh\ntrue\n", "job": {"name": "NAME", "hold": true, "partition": "sets", "current_working_directory": "/tmp", "standard_output": "/dev/null", "environment": ["A=1"]}}`,
		answerID: "job_id", shows: showsJobs, hints: jobHints, skip: regexp.MustCompile(`^jobs\[\]|^job\.(step_id\.)?job_id($|\.)`), // jobs: the same fields as those of job; job_id: only one job can have the number
		situations: []situation{{name: "new job"}}},
}

var (
	nodeHints = []variant.Hint{
		hint(`^features(_act)?$`, "", `"fast"`, `"ssd"`), hint(`^gres$`, "", `"gpu:2"`, `"gpu:tesla:1"`), hint(`^(address|hostname)$`, "", `"127.1.9.9"`, `"127.1.9.8"`), hint(`^name$`, `"nosuchnode"`, `"NAME"`), hint(`^reason_uid$`, `"nosuchuser"`, `"alice"`, `"20001"`),
		hint(`^resume_after$`, "", `7200`, `3600`), hint(`^topology_str$`, "", `"default"`),
	}
	showsNodes = []show{
		settled(shownBy("node", "NodeName", "(?i)LastBusyTime|BootTime|SlurmdStartTime|CPULoad|FreeMem|CPUAlloc|AllocMem|ThreadsPerCore$", "delete NodeName=")),
		settled(withIgnored(listedBy(0, "/slurm/nodes/", "nodes"), `last_busy|boot_time|slurmd_start_time|cpu_load|free_mem|alloc_|idle`)),
		settled(withIgnored(listedBy(1, "/slurm/nodes/", "nodes"), `last_busy|boot_time|slurmd_start_time|cpu_load|free_mem|alloc_|idle`)),
	}
	makeNodes = scontrol("create NodeName=NAME NodeAddr=127.1.3.1 CPUs=4 RealMemory=1000 Feature=fast,ssd Weight=5 State=CLOUD")
)

var (
	partitionHints = []variant.Hint{
		hint(`nodes[.](allowed_allocation|configured)$`, `"nosuchnode"`, `"n02"`, `"n[05-06]"`), hint(`accounts[.](allowed|deny)$`, `"nosuchaccount"`, `"physics"`, `"optics,physics"`), hint(`groups[.]allowed$`, `"nosuchgroup"`, `"alice"`, `"alice,bob"`),
		hint(`qos[.](allowed|deny|assigned)$`, `"nosuchqos"`, `"quick"`, `"normal"`), hint(`alternate$`, `"nosuchpartition"`, `"debug"`, `"fake"`), hint(`billing_weights$`, "", `"CPU=1.0,Mem=0.25G"`), hint(`defaults[.]job$`, "", `"DefCpuPerGPU=2"`, `"DefMemPerGPU=100"`),
		hint(`node_sets$`, `"nosuchset"`, `"stacked"`), hint(`topology$`, `"nosuchtopology"`, `"default"`), hint(`partition[.]exclusive$`, "", `"USER"`, `"NODE"`), hint(`partition[.]oversubscribe$`, "", `"YES:3"`, `"FORCE"`),
	}
	showsPartitions = []show{restoringDefault(shownBy("partition", "PartitionName", "", "delete PartitionName=")), listedBy(0, "/slurm/partitions/", "partitions"), listedBy(1, "/slurm/partitions/", "partitions")}
)

// startTime is a time that no clock of the test reaches. In a body, each trial
// has a time of its own instead, so that its reservations don't overlap those of
// other trials.
var startTime = time.Now().Add(240 * time.Hour).Unix()

var (
	newReservation   = fmt.Sprintf(`"start_time": {"set": true, "number": %d}, "duration": {"set": true, "number": 60}, "users": ["alice"], "node_list": ["OWNNODE"], "flags": ["OVERLAP"]}`, startTime)
	makeReservations = scontrol("create ReservationName=NAME StartTime=now+9days Duration=60 Nodes=n01 Users=alice,bob Flags=overlap,maint Comment=c MaxStartDelay=60")
	reservationHints = []variant.Hint{
		hint(`accounts$`, `"nosuchaccount"`, `"physics"`, `"-optics"`), hint(`users$`, `"nosuchuser"`, `"alice"`, `"bob"`), hint(`groups$`, `"nosuchgroup"`, `"alice"`, `"bob"`), hint(`licenses$`, `"nosuchlicense:1"`, `"matlab:1"`, `"fluent:2"`), hint(`node_list$`, `"nosuchnode"`, `"n05"`, `"n06"`),
		hint(`partition$`, `"nosuchpartition"`, `"fake"`, `"debug"`), hint(`features$`, `"nosuchfeature"`, `"fake"`), hint(`start_time$`, "", fmt.Sprint(startTime+3600), fmt.Sprint(startTime+7200)), hint(`end_time$`, "", fmt.Sprint(startTime+9000), fmt.Sprint(startTime+18000)),
		hint(`(core|node)_count$`, "", `2`, `1`), hint(`tres\[\][.]type$`, `"nosuchtype"`, `"node"`, `"cpu"`), elementHint(`tres$`, `{"type": "cpu", "count": 2}`, `{"type": "gres", "name": "nosuchgres", "count": 3}`, `{"type": "license", "name": "matlab", "count": 1}`),
	}
	showsReservations = []show{shownBy("reservation", "ReservationName", "", "delete ReservationName="), listedBy(0, "/slurm/reservations/", "reservations"), listedBy(1, "/slurm/reservations/", "reservations")}
)

var (
	jobHints = []variant.Hint{
		hint(`(required|excluded)_nodes$|allocation_node_list$`, `"nosuchnode"`, `"n05"`, `"n06"`), hint(`reservation$`, `"nosuchreservation"`), hint(`licenses$`, `"nosuchlicense:1"`, `"matlab:1"`, `"fluent:2"`), hint(`(constraints|prefer|cluster_constraint|batch_features)$`, `"nosuchfeature"`, `"fake"`, `"fast"`),
		hint(`(begin_time|deadline|end_time)$`, "", fmt.Sprint(startTime+86400), fmt.Sprint(startTime+172800)), hint(`dependency$`, `"afterok:4000000"`, `"singleton"`), hint(`tres_per_\w+$`, `"gres/nosuchgres:1"`, `"gres/gpu:1"`, `"gres/gpu:tesla:1"`), hint(`(cpus|memory)_per_tres$`, "", `"gres/gpu:2"`), hint(`tres_(bind|freq)$`, "", `"gres/gpu:closest"`, `"gpu:low"`),
		hint(`environment$`, "", `"B=2"`, `"C=3"`), hint(`(user|group)_id$`, `"nosuchuser"`, `"alice"`, `"20002"`), hint(`cpu_frequency$`, "", `"low"`, `"medium-high:performance"`), hint(`distribution$`, "", `"cyclic:block"`, `"plane=2"`), hint(`(account_gather_frequency)$`, "", `"task=10"`, `"30"`),
		hint(`array$`, "", `"1-3"`, `"1-9:2%1"`), hint(`nodes$`, "", `"1-2"`, `"2"`), hint(`kill_warning_signal$`, "", `"USR1"`, `"10"`), hint(`^script$|[.]script$`, "", `"#!/bin/sh\nfalse\n"`), hint(`(standard_\w+|current_working_directory)$`, "", `"/tmp/x"`, `"y-%u"`), hint(`clusters$`, `"nosuchcluster"`, `"lab"`),
		hint(`crontab[.](minute|hour|day_of_month|month)$`, "", `"1"`, `"*/2"`), hint(`crontab[.]specification$`, "", `"1 2 * * *"`), hint(`network$`, "", `"devices=eth"`), hint(`mcs_label$`, "", `"alice"`), hint(`memory_binding$|cpu_binding$`, "", `"local"`), hint(`required_switches$|segment_size$`, "", `1`, `2`), hint(`(cpus|nodes|tasks|sockets|threads|boards|cores)`, "", `2`, `1`),
		elementHint(`^jobs$`, `{"name": "NAME", "hold": true, "partition": "sets", "current_working_directory": "/tmp", "environment": ["A=1"]}`, ""),
	}
	showsJobs = []show{shownJobs(), jobsOf(listedBy(0, "/slurm/jobs/", "jobs")), jobsOf(listedBy(1, "/slurm/jobs/", "jobs"))}
)

// onlyLists limits hints to fields whose path matches the pattern within.
func onlyLists(hints []variant.Hint, within string) (list []variant.Hint) {
	for _, h := range hints {
		h.Field = regexp.MustCompile(`(` + within + `).*` + h.Field.String() + `|(` + within + `)$`)
		list = append(list, h)
	}
	return list
}
