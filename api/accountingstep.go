package api

import (
	"cmp"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// AccountingStepRow is a step, with the job that it belongs to. The job's
// Records translate the ids in the step to names.
type AccountingStepRow struct {
	*model.AccountingStep
	job *AccountingJobRow
}

// AccountingStep declares the fields of a step of a job.
var AccountingStep = schema.Object("step", func() schema.Fields[AccountingStepRow] {
	return schema.Fields[AccountingStepRow]{
		schema.Group("time", "Times", schema.Fields[AccountingStepRow]{
			schema.F("elapsed", schema.Int32, func(s *AccountingStepRow) *uint32 { return &s.Elapsed }, "Run time", schema.Unit("s")),
			schema.F("end", moment, func(s *AccountingStepRow) *model.Time { return &s.EndTime }, "End time", schema.Unit(UnixTime)),
			schema.F("start", moment, func(s *AccountingStepRow) *model.Time { return &s.StartTime }, "Start time", schema.Unit(UnixTime)),
			schema.F("suspended", schema.Int32, func(s *AccountingStepRow) *uint32 { return &s.Suspended }, "Time during which the step was suspended", schema.Unit("s")),
			cpuTime("system", "System CPU time", schema.Int64[uint64], schema.Int32[uint32], func(s *AccountingStepRow) *uint64 { return &s.SystemCPUSec }, func(s *AccountingStepRow) *uint32 { return &s.SystemCPUUsec }),
			schema.F("limit", number, func(s *AccountingStepRow) *model.Opt[uint32] { return &s.TimeLimit }, "Time limit of the step", schema.Unit("min"), schema.Since(V43)),
			cpuTime("total", "CPU time", schema.Int64[uint64], schema.Int32[uint32], func(s *AccountingStepRow) *uint64 { return &s.TotalCPUSec }, func(s *AccountingStepRow) *uint32 { return &s.TotalCPUUsec }),
			cpuTime("user", "User CPU time", schema.Int64[uint64], schema.Int32[uint32], func(s *AccountingStepRow) *uint64 { return &s.UserCPUSec }, func(s *AccountingStepRow) *uint32 { return &s.UserCPUUsec }),
		}),
		schema.Show("exit_code", exitCodeType.Type, func(s *AccountingStepRow) exitCode { return decodeExit(s.ExitCode) }, "Result of the step"),
		schema.Group("nodes", "Nodes of the step", schema.Fields[AccountingStepRow]{
			schema.F("count", schema.Int32, func(s *AccountingStepRow) *uint32 { return &s.NodeCount }, "Number of nodes", schema.Count),
			schema.F("range", schema.String, func(s *AccountingStepRow) *string { return &s.Nodes }, "Names of the nodes, as a host list"),
			schema.Show("list", schema.Named("hostlist", schema.StreamOf(schema.String)), stepNodes, "Names of the nodes"),
		}),
		schema.Group("tasks", "Tasks of the step", schema.Fields[AccountingStepRow]{
			schema.F("count", schema.Int32, func(s *AccountingStepRow) *uint32 { return &s.NumTasks }, "Number of tasks", schema.Count),
		}),
		schema.Show("pid", schema.String, func(*AccountingStepRow) string { return "" }, "No longer used", schema.Deprecated(V42), schema.Until(V45)),
		schema.Group("CPU", "Processors", schema.Fields[AccountingStepRow]{
			schema.Group("requested_frequency", "Requested frequency", schema.Fields[AccountingStepRow]{
				schema.F("min", number, func(s *AccountingStepRow) *model.Opt[uint32] { return &s.CPUFreqMin }, "Minimum frequency", schema.Unit("kHz")),
				schema.F("max", number, func(s *AccountingStepRow) *model.Opt[uint32] { return &s.CPUFreqMax }, "Maximum frequency", schema.Unit("kHz")),
			}),
			schema.Show("governor", schema.String, func(s *AccountingStepRow) string { return governor(s.CPUFreqGov) }, "Requested governor"),
		}),
		schema.Show("kill_request_user", schema.String, func(s *AccountingStepRow) string { return userName(s.job.Users, s.ReqUserID) }, "User who cancelled the step"),
		schema.F("state", jobStates.Type, func(s *AccountingStepRow) *model.JobState { return &s.State }, "Base state, followed by flags"),
		schema.Group("statistics", "Used resources", schema.Fields[AccountingStepRow]{
			schema.Group("CPU", "Processors", schema.Fields[AccountingStepRow]{
				schema.Show("actual_frequency", schema.Int64, func(s *AccountingStepRow) int64 { return int64(s.Stats.CPUFreq) }, "Mean frequency of all tasks", schema.Unit("kHz")),
			}),
			schema.Group("energy", "Energy", schema.Fields[AccountingStepRow]{
				schema.F("consumed", number, func(s *AccountingStepRow) *model.Opt[uint64] { return &s.Stats.ConsumedEnergy }, "Energy used by all tasks", schema.Unit("J")),
			}),
		}),
		schema.Group("step", "Id, name and files of the step", schema.Fields[AccountingStepRow]{
			schema.Show("id", schema.String, func(s *AccountingStepRow) string { return stepID(&s.StepID) }, "Job and step id, such as 12.batch"),
			schema.F("name", schema.String, func(s *AccountingStepRow) *string { return &s.Name }, "Name of the step"),
			schema.F("stderr", schema.String, func(s *AccountingStepRow) *string { return &s.StdErr }, "Pattern of the standard error path", schema.Since(V43)),
			schema.F("stdin", schema.String, func(s *AccountingStepRow) *string { return &s.StdIn }, "Pattern of the standard input path", schema.Since(V43)),
			schema.F("stdout", schema.String, func(s *AccountingStepRow) *string { return &s.StdOut }, "Pattern of the standard output path", schema.Since(V43)),
			schema.Show("stderr_expanded", schema.String, func(s *AccountingStepRow) string { return accountingStepPath(s, s.StdErr) }, "Standard error path", schema.Since(V43)),
			schema.Show("stdin_expanded", schema.String, func(s *AccountingStepRow) string { return accountingStepPath(s, s.StdIn) }, "Standard input path", schema.Since(V43)),
			schema.Show("stdout_expanded", schema.String, func(s *AccountingStepRow) string { return accountingStepPath(s, s.StdOut) }, "Standard output path", schema.Since(V43)),
		}),
		schema.F("submit_line", schema.String, func(s *AccountingStepRow) *string { return &s.SubmitLine }, "Command that started the step", schema.Since(V45)),
		schema.Group("task", "Tasks of the step", schema.Fields[AccountingStepRow]{
			schema.Show("distribution", schema.String, func(s *AccountingStepRow) string { return distribution(s.TaskDist) }, "Distribution of the tasks over nodes, sockets and cores"),
		}),
		schema.Group("tres", "Trackable resources", schema.Fields[AccountingStepRow]{
			usedTRES("requested", "Resources that the step has used: CPU time, memory and data read", func(s *AccountingStepRow) *model.StepUsage { return &s.Stats.In }),
			usedTRES("consumed", "Data that the step has written", func(s *AccountingStepRow) *model.StepUsage { return &s.Stats.Out }),
			schema.Show("allocated", amounts, func(s *AccountingStepRow) []model.TRES { return s.job.Amounts(s.TRESAlloc) }, "Allocated resources"),
		}),
	}
})

// usedTRES returns a field for the trackable resources that a step used. The
// field "requested" contains the CPU time, the memory and the amount of data
// read. The field "consumed" contains the amount of data written. These
// misleading names and the names of the schemas come from slurmrestd.
func usedTRES(name, doc string, usageOf func(*AccountingStepRow) *model.StepUsage) schema.Field[AccountingStepRow] {
	schemas := map[string]string{"requested": "step_tres_req", "consumed": "step_tres_usage"}
	extreme := func(suffix string) func() schema.Type[[]taskTRES] {
		return schema.Named(schemas[name]+suffix, schema.List(taskTRESType.Type))
	}
	return schema.Group(name, doc, schema.Fields[AccountingStepRow]{
		schema.Show("max", extreme("_max"), func(s *AccountingStepRow) []taskTRES {
			u := usageOf(s)
			return taskAmounts(s, u.Max, u.MaxNode, u.MaxTask)
		}, "Usage of the task with the highest usage"),
		schema.Show("min", extreme("_min"), func(s *AccountingStepRow) []taskTRES {
			u := usageOf(s)
			return taskAmounts(s, u.Min, u.MinNode, u.MinTask)
		}, "Usage of the task with the lowest usage"),
		schema.Show("average", amounts, func(s *AccountingStepRow) []model.TRES { return s.job.Amounts(usageOf(s).Average) }, "Average of all tasks"),
		schema.Show("total", amounts, func(s *AccountingStepRow) []model.TRES { return s.job.Amounts(usageOf(s).Total) }, "Total of all tasks"),
	})
}

// taskTRES is the amount of a trackable resource that one task used, with the
// task's number and node.
type taskTRES struct {
	model.TRES
	task uint64
	node string
}

// taskTRESType declares the fields of a taskTRES. slurmrestd always sends the
// fields "task" and "node", but its documents lack them.
var taskTRESType = schema.Object("tres_of_task", func() schema.Fields[taskTRES] {
	return schema.Fields[taskTRES]{
		schema.F("type", schema.String, func(t *taskTRES) *string { return &t.Type }, "Type, such as cpu or gres", schema.Required(0)),
		schema.F("name", schema.String, func(t *taskTRES) *string { return &t.Name }, "Name of the resource, if there are several of the type"),
		schema.F("id", schema.Int32, func(t *taskTRES) *uint32 { return &t.ID }, "Number of the resource", schema.Bare),
		schema.Show("count", schema.Int64, func(t *taskTRES) int64 { return int64(t.Count) }, "Number of units; for memory in bytes", schema.Count),
		schema.Show("task", schema.Int64, func(t *taskTRES) int64 { return int64(t.task) }, "Number of the task", schema.Bare, schema.Extension),
		schema.F("node", schema.String, func(t *taskTRES) *string { return &t.node }, "Node of the task", schema.Extension),
	}
})

// taskAmounts combines three lists whose keys are resource ids. The values are
// amounts in counts, node indexes in nodes, and task numbers in tasks. A
// resource is omitted if its amount and its task number are 0 and its node is
// unknown.
func taskAmounts(s *AccountingStepRow, counts, nodes, tasks string) []taskTRES {
	var list []taskTRES
	if counts == "" && nodes == "" && tasks == "" {
		return nil
	}
	nodeIndexes, taskIndexes := byID(nodes), byID(tasks)
	for _, t := range s.job.Amounts(counts) {
		task := taskTRES{TRES: t, task: taskIndexes[t.ID]}
		if index, known := nodeIndexes[t.ID]; known {
			task.node = hostAt(s.Nodes, index)
		}
		if task.Count != 0 || task.task != 0 || task.node != "" {
			list = append(list, task)
		}
	}
	return list
}

func byID(s string) map[uint32]uint64 {
	m := map[uint32]uint64{}
	for part := range strings.SplitSeq(s, ",") {
		if id, n, ok := amount(part); ok {
			m[id] = n
		}
	}
	return m
}

// maxHostIndex is the highest index that hostAt accepts. hostAt expands the
// list name by name, and a short host list can expand to billions of names.
const maxHostIndex = 1 << 17

// hostAt returns the name with index n in a host list. It returns "" if there
// is no such name, or if n exceeds maxHostIndex.
func hostAt(list string, n uint64) string {
	if n > maxHostIndex {
		return ""
	}
	for host := range model.Hosts(list) {
		if n == 0 {
			return host
		}
		n--
	}
	return ""
}

// stepNodes returns the names of a step's nodes. It returns at most as many
// names as the step has nodes according to NodeCount, and at most maxHostIndex.
func stepNodes(s *AccountingStepRow) schema.Stream[string] {
	return func(each func(*string) error) error {
		remaining := min(s.NodeCount, maxHostIndex)
		for host := range model.Hosts(s.Nodes) {
			if remaining == 0 {
				return nil
			}
			remaining--
			if err := each(&host); err != nil {
				return err
			}
		}
		return nil
	}
}

// stepID returns a step's id as text, such as 12, 12.batch, 12.3 or 12.3+1.
func stepID(id *model.StepID) string {
	s := strconv.FormatUint(uint64(id.JobID), 10)
	if step := stepName(id.Step); step != "" {
		s += "." + step
	}
	if id.HetComponent.Set {
		s += "+" + strconv.FormatUint(uint64(id.HetComponent.Number), 10)
	}
	return s
}

// governor returns the name of a CPU frequency governor.
func governor(n uint32) string {
	if name := cpuFreqGovsNames[uint64(n)]; name != "" {
		return name
	}
	if n&0x80000000 != 0 {
		return "Unknown"
	}
	return strconv.FormatUint(uint64(n), 10)
}

// distribution converts n to text. The bits of n encode how tasks are
// distributed over nodes, sockets and cores.
func distribution(n uint32) string {
	words := [...]string{"", "Cyclic", "Block", "FCyclic"}
	node, socket, core := n&0xf, n>>4&0xf, n>>8&0xf
	s := "Unknown"
	switch {
	case n&0xf000 != 0 || socket > 3 || core > 3:
	case node == 3 && socket == 0:
		s = "arbitrary task distribution"
	case node == 4 && socket == 0:
		s = "Plane"
	case (node == 1 || node == 2) && socket == 0:
		s = words[node]
	case node == 1 || node == 2:
		s = words[node][:1] + words[socket] + words[core]
	}
	if n&0x800000 != 0 {
		s += ",Pack"
	}
	if n&0x400000 != 0 {
		s += ",NoPack"
	}
	return s
}

// selectedStep returns the type of a parameter that names a job, a task or a
// step, such as 12, 12_3, 12+1, 12.0 or 12.batch.
func selectedStep() schema.Type[model.SelectedStep] { return asText(parseStep) }

func selectedSteps() schema.Type[[]model.SelectedStep] {
	return asList(func(s string) ([]model.SelectedStep, error) {
		var list []model.SelectedStep
		for part := range strings.SplitSeq(s, ",") {
			step, err := parseStep(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			list = append(list, step)
		}
		return list, nil
	})
}

func parseStep(s string) (step model.SelectedStep, err error) {
	errSyntax := noSuch("job", s)
	parseID := func(digits string) (n uint32, ok bool) {
		big, err := strconv.ParseUint(digits, 10, 32)
		return uint32(big), err == nil && big < noUser
	}
	job, name, stepped := strings.Cut(s, ".")
	if stepped {
		known := map[string]uint32{"batch": model.BatchStep, "extern": model.ExternStep, "interactive": model.InteractiveStep}
		n, ok := known[name]
		if !ok {
			if n, ok = parseID(name); !ok {
				return step, errSyntax
			}
		}
		step.Step.Step = model.Some(n)
	}
	for _, part := range []struct {
		mark string
		into *model.Opt[uint32]
	}{{"+", &step.HetOffset}, {"_", &step.ArrayTaskID}} {
		front, digits, found := strings.Cut(job, part.mark)
		if !found {
			continue
		}
		n, ok := parseID(digits)
		if !ok {
			return step, errSyntax
		}
		job, *part.into = front, model.Some(n)
	}
	n, ok := parseID(job)
	if !ok || n == 0 {
		return step, errSyntax
	}
	step.Step.JobID = n
	return step, nil
}

// accountingStepPath returns the path that the first task of a step opens.
func accountingStepPath(s *AccountingStepRow, pattern string) string {
	return accountingPath(s.job, s.StepID.Step, s.Nodes, cmp.Or(s.WorkDir, s.job.WorkDir), pattern)
}
