package script

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The type argument says whether an option has a value.
type argument int

const (
	none argument = iota
	required
	optional // only after "="
)

// option is an option of sbatch.
type option struct {
	name   string
	letter string // "" for none
	arg    argument
	set    func(r *reader, value string) error
}

// The maps byName and byLetter contain the options, keyed by their long and
// short names.
var byName, byLetter = map[string]*option{}, map[string]*option{}

func init() {
	for i := range options {
		o := &options[i]
		byName[o.name] = o
		if o.letter != "" {
			byLetter[o.letter] = o
		}
	}
}

// Options returns the names of all supported options, sorted by long name. An
// element is, for example, "-J, --job-name" or "--mem".
func Options() (names []string) {
	for _, o := range options {
		name := "--" + o.name
		if o.letter != "" {
			name = "-" + o.letter + ", " + name
		}
		names = append(names, name)
	}
	return names
}

// unsupportedHints contains hints for unsupported options of sbatch. Many of
// these options affect the sbatch command and not the job.
var unsupportedHints = map[string]string{
	"--wait":         "use schedctl submit --wait",
	"-W":             "use schedctl submit --wait",
	"--wrap":         "use schedctl submit --wrap 'COMMAND'",
	"--parsable":     "schedctl submit prints only the id of the job",
	"--quiet":        "schedctl submit prints only the id of the job",
	"-Q":             "schedctl submit prints only the id of the job",
	"--test-only":    "the REST API has no such field",
	"--uid":          "use a token of that user",
	"--gid":          "use a token of a user with that group",
	"--clusters":     "use --url to select the cluster",
	"-M":             "use --url to select the cluster",
	"hetjob":         "heterogeneous jobs are not supported",
	"--propagate":    "the REST API does not transfer resource limits",
	"--get-user-env": "set variables with --export",
}

// unchangeable contains the options that controllers ignore in a change of an
// existing job, or that have another meaning there. A value may be a hint.
var unchangeable = map[string]string{
	"array": "", "container": "", "distribution": "", "export": "", "no-kill": "", "ntasks-per-core": "", "open-mode": "",
	"overcommit": "", "signal": "", "chdir": "", "input": "",
	"hold": "use schedctl hold",
}

// The variable options lists the supported options of sbatch, sorted by name.
// Each option has one entry here and one entry in schedctl(1).
var options = []option{
	{"account", "A", required, text("account")},
	{"array", "a", required, text("array")},
	{"begin", "b", required, begin},
	{"chdir", "D", required, directory},
	{"comment", "", required, text("comment")},
	{"constraint", "C", required, text("constraints")},
	{"container", "", required, text("container")},
	{"contiguous", "", none, set("contiguous", true)},
	{"core-spec", "S", required, number("core_specification", 0)},
	{"cpus-per-gpu", "", required, prefixed("cpus_per_tres", "gres/gpu")},
	{"cpus-per-task", "c", required, number("cpus_per_task", 1)},
	{"dependency", "d", required, text("dependency")},
	{"distribution", "m", required, text("distribution")},
	{"error", "e", required, text("standard_error")},
	{"exclude", "x", required, list("excluded_nodes")},
	{"exclusive", "", optional, exclusive},
	{"export", "", required, func(r *reader, v string) error { r.export = &v; return nil }},
	{"gpus", "G", required, prefixed("tres_per_job", "gres/gpu")},
	{"gpus-per-node", "", required, prefixed("tres_per_node", "gres/gpu")},
	{"gpus-per-socket", "", required, prefixed("tres_per_socket", "gres/gpu")},
	{"gpus-per-task", "", required, prefixed("tres_per_task", "gres/gpu")},
	{"gres", "", required, gres},
	{"hold", "H", none, set("hold", true)},
	{"input", "i", required, text("standard_input")},
	{"job-name", "J", required, text("name")},
	{"licenses", "L", required, text("licenses")},
	{"mail-type", "", required, mailType},
	{"mail-user", "", required, text("mail_user")},
	{"mem", "", required, memory("memory_per_node", "memory_per_cpu")},
	{"mem-per-cpu", "", required, memory("memory_per_cpu", "memory_per_node")},
	{"mem-per-gpu", "", required, memoryPerGPU},
	{"mincpus", "", required, number("minimum_cpus_per_node", 1)},
	{"network", "", required, text("network")},
	{"nice", "", optional, nice},
	{"no-kill", "k", none, set("kill_on_node_fail", false)},
	{"no-requeue", "", none, set("requeue", false)},
	{"nodelist", "w", required, list("required_nodes")},
	{"nodes", "N", required, nodes},
	{"ntasks", "n", required, number("tasks", 1)},
	{"ntasks-per-core", "", required, number("tasks_per_core", 1)},
	{"ntasks-per-node", "", required, number("tasks_per_node", 1)},
	{"ntasks-per-socket", "", required, number("tasks_per_socket", 1)},
	{"open-mode", "", required, openMode},
	{"output", "o", required, text("standard_output")},
	{"overcommit", "O", none, set("overcommit", true)},
	{"oversubscribe", "s", none, set("shared", []string{"oversubscribe"})},
	{"partition", "p", required, text("partition")},
	{"prefer", "", required, text("prefer")},
	{"priority", "", required, priority},
	{"qos", "q", required, text("qos")},
	{"reboot", "", none, set("reboot", true)},
	{"requeue", "", none, set("requeue", true)},
	{"reservation", "", required, text("reservation")},
	{"signal", "", required, signal},
	{"sockets-per-node", "", required, number("sockets_per_node", 1)},
	{"threads-per-core", "", required, number("threads_per_core", 1)},
	{"time", "t", required, limit("time_limit")},
	{"time-min", "", required, limit("time_minimum")},
	{"tmp", "", required, disk},
	{"wckey", "", required, text("wckey")},
}

// numberObject returns the object with which the API represents the number n.
// The API uses such objects for numbers that may be unset.
func numberObject(n uint64) map[string]any { return map[string]any{"set": true, "number": n} }

func text(field string) func(*reader, string) error {
	return func(r *reader, v string) error { r.job[field] = v; return nil }
}

func set(field string, value any) func(*reader, string) error {
	return func(r *reader, _ string) error { r.job[field] = value; return nil }
}

// list returns a function that parses a list of host names and stores it in
// field. Commas within brackets are part of a name.
func list(field string) func(*reader, string) error {
	return func(r *reader, v string) error {
		var names []string
		depth, from := 0, 0
		for i, c := range v + "," {
			switch {
			case c == '[':
				depth++
			case c == ']':
				depth--
			case c == ',' && depth == 0:
				if i > from {
					names = append(names, v[from:i])
				}
				from = i + 1
			}
		}
		if depth != 0 {
			return errors.New("a bracket is not closed")
		}
		r.job[field] = names
		return nil
	}
}

func number(field string, minimum int) func(*reader, string) error {
	return func(r *reader, v string) error {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || int(n) < minimum {
			return errors.New("not a number from " + strconv.Itoa(minimum) + " on")
		}
		r.job[field] = int(n)
		return nil
	}
}

// prefixed returns a function that stores the count of a resource in field. For
// the resource gres/gpu, the value 2 becomes gres/gpu:2, and the value a100:2
// becomes gres/gpu:a100:2.
func prefixed(field, resource string) func(*reader, string) error {
	return func(r *reader, v string) error {
		var parts []string
		for part := range strings.SplitSeq(v, ",") {
			parts = append(parts, resource+":"+part)
		}
		r.job[field] = strings.Join(parts, ",")
		return nil
	}
}

func gres(r *reader, v string) error {
	var parts []string
	for part := range strings.SplitSeq(v, ",") {
		if !strings.HasPrefix(part, "gres/") {
			part = "gres/" + part
		}
		parts = append(parts, part)
	}
	r.job["tres_per_node"] = strings.Join(parts, ",")
	return nil
}

func directory(r *reader, v string) error {
	if !strings.HasPrefix(v, "/") {
		base, _ := r.job["current_working_directory"].(string)
		v = strings.TrimRight(base, "/") + "/" + v
	}
	r.job["current_working_directory"] = v
	return nil
}

// nodes sets the number of nodes. The value is N or MIN-MAX.
func nodes(r *reader, v string) error {
	minText, maxText, isRange := strings.Cut(v, "-")
	a, err := strconv.ParseUint(minText, 10, 31)
	b := a
	if isRange && err == nil {
		b, err = strconv.ParseUint(maxText, 10, 31)
	}
	if err != nil || a == 0 || b < a {
		return errors.New("not a number of nodes, or MIN-MAX")
	}
	r.job["nodes"] = v
	r.job["minimum_nodes"], r.job["maximum_nodes"] = int(a), int(b)
	return nil
}

func exclusive(r *reader, v string) error {
	switch v {
	case "":
		v = "none"
	case "user", "mcs", "topo":
	default:
		return errors.New("not user, mcs or topo")
	}
	r.job["shared"] = []string{v}
	return nil
}

// mailTypes lists the events for which a site can send mail. The value ALL of
// the option --mail-type means the first six events.
var mailTypes = []string{
	"BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPENDENCY",
	"ARRAY_TASKS", "TIME=50%", "TIME=80%", "TIME=90%", "TIME=100%",
}

func mailType(r *reader, v string) error {
	types := []string{}
	for word := range strings.SplitSeq(v, ",") {
		word = strings.ToUpper(word)
		if percent, ok := strings.CutPrefix(word, "TIME_LIMIT"); ok {
			if percent = strings.TrimPrefix(percent, "_"); percent == "" {
				percent = "100"
			}
			word = "TIME=" + percent + "%"
		}
		switch {
		case word == "NONE":
		case word == "ALL":
			types = append(types, mailTypes[:6]...)
		case slices.Contains(mailTypes, word):
			types = append(types, word)
		default:
			return errors.New("an unknown event")
		}
	}
	r.job["mail_type"] = types
	return nil
}

func nice(r *reader, v string) error {
	if v == "" {
		v = "100"
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return errors.New("not a number")
	}
	r.job["nice"] = int(n)
	return nil
}

func priority(r *reader, v string) error {
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil {
		return errors.New("not a number")
	}
	r.job["priority"] = numberObject(n)
	return nil
}

func openMode(r *reader, v string) error {
	switch strings.ToLower(v) {
	case "append", "a":
		r.job["open_mode"] = []string{"APPEND"}
	case "truncate", "t":
		r.job["open_mode"] = []string{"TRUNCATE"}
	default:
		return errors.New("not append or truncate")
	}
	return nil
}

// signal sets the signal that the job receives before its time limit. The value
// has the form [B:]SIGNAL[@SECONDS]. The prefixes R: and RB: of sbatch are not
// supported.
func signal(r *reader, v string) error {
	var flags []string
	if targets, rest, ok := strings.Cut(v, ":"); ok {
		for _, c := range strings.ToUpper(targets) {
			switch c {
			case 'B':
				flags = append(flags, "BATCH_JOB")
			default:
				return errors.New("the REST API supports only B: before a signal")
			}
		}
		v = rest
	}
	name, seconds, hasDelay := strings.Cut(v, "@")
	if name == "" {
		return errors.New("no signal")
	}
	r.job["kill_warning_signal"] = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if hasDelay {
		n, err := strconv.ParseUint(seconds, 10, 16)
		if err != nil {
			return errors.New("not a number of seconds after @")
		}
		r.job["kill_warning_delay"] = numberObject(n)
	}
	if flags != nil {
		r.job["kill_warning_flags"] = flags
	}
	return nil
}

// limit returns a function that parses a time and stores it in field. The time
// is stored as a number of minutes, rounded up, or as infinite.
func limit(field string) func(*reader, string) error {
	return func(r *reader, v string) error {
		switch strings.ToLower(v) {
		case "-1", "infinite", "unlimited":
			r.job[field] = map[string]any{"set": false, "infinite": true}
			return nil
		}
		d, err := parseDuration(v)
		if err != nil {
			return err
		}
		r.job[field] = numberObject(uint64((d + time.Minute - 1) / time.Minute))
		return nil
	}
}

// begin sets the earliest start time.
func begin(r *reader, v string) error {
	start, err := parseBegin(v, time.Now())
	if err != nil {
		return err
	}
	r.job["begin_time"] = numberObject(uint64(start.Unix()))
	return nil
}

// memory returns a function that stores an amount of memory in field, in MiB.
// The returned function also removes the field whose name is in other. A job
// has a memory limit either per node or per CPU, so if the user gives both
// options, the last one takes effect.
func memory(field, other string) func(*reader, string) error {
	return func(r *reader, v string) error {
		n, err := parseMemory(v)
		if err != nil {
			return err
		}
		delete(r.job, other)
		r.job[field] = numberObject(n)
		return nil
	}
}

func memoryPerGPU(r *reader, v string) error {
	n, err := parseMemory(v)
	if err != nil {
		return err
	}
	r.job["memory_per_tres"] = "gres/gpu:" + strconv.FormatUint(n, 10)
	return nil
}

func disk(r *reader, v string) error {
	n, err := parseMemory(v)
	if err != nil || n > 1<<31-1 {
		return errors.New("not an amount such as 500M or 10G")
	}
	r.job["temporary_disk_per_node"] = int(n)
	return nil
}
