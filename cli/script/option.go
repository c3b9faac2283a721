package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The type argument says whether an option has a value.
type argument int

const (
	none argument = iota
	required
	optional // only after "="
)

// option is a row of the table of sbatch's options. The status page has the
// same table, in web/src/core/options.json, which a test writes.
type option struct {
	name   string
	letter string // "" for none
	arg    argument
	syntax string // of the value: a key of syntaxes
	field  string // the field of the job that the option sets
	detail any    // what the syntax needs in addition, such as the accepted words
}

// Reasons why an option can't be part of a submission.
const (
	forCommand  = "command"  // it concerns the command sbatch and not the job
	noField     = "field"    // the REST API has no field for it
	localFile   = "file"     // it names a file that only sbatch reads
	forCluster  = "cluster"  // another gateway serves that cluster
	forIdentity = "identity" // a token has only one user
)

// refused returns the row of an option that sbatch has, but no submission can
// contain.
func refused(name, letter string, arg argument, reason string) option {
	return option{name, letter, arg, "refused", "", reason}
}

// jobFlag returns the row of an option that adds a flag to the job.
func jobFlag(name, word string) option {
	return option{name, "", none, "fixed", "flags", []string{word}}
}

// words lists the accepted values of an option, and the fields that each of them
// sets.
type words map[string]Job

// The variable options lists the options of sbatch, sorted by name. The test
// TestManual checks that schedctl(1) lists those that are supported. If several
// options set the same field together (joined), the field has their values in
// the order of this list.
var options = []option{
	{"account", "A", required, "text", "account", nil},
	{"acctg-freq", "", required, "text", "account_gather_frequency", nil},
	{"array", "a", required, "text", "array", nil},
	{"batch", "", required, "text", "batch_features", nil},
	{"bb", "", required, "text", "burst_buffer", nil},
	refused("bbf", "", required, localFile),
	{"begin", "b", required, "moment", "begin_time", nil},
	{"chdir", "D", required, "directory", "current_working_directory", nil},
	refused("cluster", "", required, forCluster),
	{"cluster-constraint", "", required, "text", "cluster_constraint", nil},
	refused("clusters", "M", required, forCluster),
	{"comment", "", required, "text", "comment", nil},
	jobFlag("consolidate-segments", "CONSOLIDATE_SEGMENTS"),
	{"constraint", "C", required, "text", "constraints", nil},
	{"container", "", required, "text", "container", nil},
	{"container-id", "", required, "text", "container_id", nil},
	{"container-type", "", required, "text", "container_type", nil},
	{"context", "", required, "text", "selinux_context", nil},
	{"contiguous", "", none, "fixed", "contiguous", true},
	{"core-spec", "S", required, "count", "core_specification", 0},
	{"cores-per-socket", "", required, "count", "cores_per_socket", 1},
	{"cpu-freq", "", required, "text", "cpu_frequency", nil},
	{"cpus-per-gpu", "", required, "gpuCount", "cpus_per_tres", nil},
	{"cpus-per-task", "c", required, "count", "cpus_per_task", 1},
	{"deadline", "", required, "moment", "deadline", "seconds"},
	{"delay-boot", "", required, "seconds", "delay_boot", nil},
	{"dependency", "d", required, "text", "dependency", nil},
	{"distribution", "m", required, "text", "distribution", nil},
	{"error", "e", required, "file", "standard_error", nil},
	{"exclude", "x", required, "hosts", "excluded_nodes", nil},
	{"exclusive", "", optional, "words", "", words{
		"": {"shared": []string{"none"}}, "exclusive": {"shared": []string{"none"}}, "allocation": {"shared": []string{"none"}},
		"oversubscribe": {"shared": []string{"oversubscribe"}}, "user": {"shared": []string{"user"}}, "mcs": {"shared": []string{"mcs"}}, "topo": {"shared": []string{"topo"}},
	}},
	{"export", "", required, "export", "", nil},
	refused("export-file", "", required, localFile),
	refused("external", "", none, forCommand),
	{"extra", "", required, "text", "extra", nil},
	{"extra-node-info", "B", required, "layout", "", nil},
	{"get-user-env", "", none, "variable", "", "SLURM_GET_USER_ENV=1"},
	refused("gid", "", required, forIdentity),
	{"gpu-bind", "", required, "prefixed", "tres_bind", "gres/gpu:"},
	{"gpu-freq", "", required, "prefixed", "tres_freq", "gpu:"},
	{"gpus", "G", required, "each", "tres_per_job", "gres/gpu:"},
	{"gpus-per-node", "", required, "each", "tres_per_node", "gres/gpu:"},
	{"gpus-per-socket", "", required, "each", "tres_per_socket", "gres/gpu:"},
	{"gpus-per-task", "", required, "each", "tres_per_task", "gres/gpu:"},
	{"gres", "", required, "gres", "tres_per_node", nil},
	{"gres-flags", "", required, "list", "flags", map[string][]string{
		"disable-binding": {"GRES_BINDING_DISABLED"}, "enforce-binding": {"GRES_BINDING_ENFORCED"},
	}},
	refused("help", "h", none, forCommand),
	{"hint", "", required, "words", "", words{
		"compute_bound": {"threads_per_core": 1, "variable": "SLURM_HINT=compute_bound"},
		"memory_bound":  {"cores_per_socket": 1, "threads_per_core": 1, "variable": "SLURM_HINT=memory_bound"},
		"multithread":   {"variable": "SLURM_HINT=multithread"}, // as many tasks per core as there are threads, which is the controller's default
		"nomultithread": {"threads_per_core": 1, "variable": "SLURM_HINT=nomultithread"},
	}},
	{"hold", "H", none, "fixed", "hold", true},
	refused("ignore-pbs", "", none, forCommand),
	{"input", "i", required, "file", "standard_input", nil},
	{"job-name", "J", required, "text", "name", nil},
	{"kill-on-invalid-dep", "", required, "words", "", words{
		"yes": {"flags": []string{"KILL_INVALID_DEPENDENCY"}}, "no": {"flags": []string{"NO_KILL_INVALID_DEPENDENCY"}},
	}},
	{"licenses", "L", required, "text", "licenses", nil},
	{"mail-type", "", required, "list", "mail_type", map[string][]string{
		"none": nil, "all": {"BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPENDENCY"},
		"begin": {"BEGIN"}, "end": {"END"}, "fail": {"FAIL"}, "requeue": {"REQUEUE"}, "stage_out": {"STAGE_OUT"}, "array_tasks": {"ARRAY_TASKS"},
		"invalid_depend": {"INVALID_DEPENDENCY"}, "invalid_dependency": {"INVALID_DEPENDENCY"}, "time_limit": {"TIME=100%"}, "time_limit_100": {"TIME=100%"},
		"time_limit_90": {"TIME=90%"}, "time_limit_80": {"TIME=80%"}, "time_limit_50": {"TIME=50%"},
	}},
	{"mail-user", "", required, "text", "mail_user", nil},
	{"mcs-label", "", required, "text", "mcs_label", nil},
	{"mem", "", required, "memory", "memory_per_node", "memory_per_cpu"},
	{"mem-bind", "", required, "memoryBinding", "memory_binding_type", map[string][]string{
		"verbose": {"VERBOSE"}, "quiet": {}, "none": {"NONE"}, "rank": {"RANK"}, "local": {"LOCAL"}, "map_mem": {"MAP"}, "mask_mem": {"MASK"}, "prefer": {"PREFER"}, "nosort": {},
	}},
	{"mem-per-cpu", "", required, "memory", "memory_per_cpu", "memory_per_node"},
	{"mem-per-gpu", "", required, "gpuMemory", "memory_per_tres", nil},
	{"mem-update", "", required, "memoryUpdate", "", nil},
	{"mincpus", "", required, "count", "minimum_cpus_per_node", 1},
	{"network", "", required, "text", "network", nil},
	{"nice", "", optional, "nice", "nice", nil},
	{"no-kill", "k", optional, "words", "", words{
		"": {"kill_on_node_fail": false}, "set": {"kill_on_node_fail": false}, "off": {"kill_on_node_fail": true}, "no": {"kill_on_node_fail": true},
	}},
	{"no-requeue", "", none, "fixed", "requeue", false},
	refused("nodefile", "F", required, localFile),
	{"nodelist", "w", required, "hosts", "required_nodes", nil},
	{"nodes", "N", required, "nodes", "nodes", nil},
	{"ntasks", "n", required, "count", "tasks", 1},
	{"ntasks-per-core", "", required, "count", "tasks_per_core", 1},
	{"ntasks-per-gpu", "", required, "count", "ntasks_per_tres", 1},
	{"ntasks-per-node", "", required, "count", "tasks_per_node", 1},
	{"ntasks-per-socket", "", required, "count", "tasks_per_socket", 1},
	{"ntasks-per-tres", "", required, "count", "ntasks_per_tres", 1},
	{"oom-kill-step", "", optional, "words", "", words{"": {"oom_kill_step": 1}, "1": {"oom_kill_step": 1}, "0": {"oom_kill_step": 0}}},
	{"open-mode", "", required, "words", "", words{
		"append": {"open_mode": []string{"APPEND"}}, "a": {"open_mode": []string{"APPEND"}}, "truncate": {"open_mode": []string{"TRUNCATE"}}, "t": {"open_mode": []string{"TRUNCATE"}},
	}},
	{"output", "o", required, "file", "standard_output", nil},
	{"overcommit", "O", none, "fixed", "overcommit", true},
	{"oversubscribe", "s", none, "fixed", "shared", []string{"oversubscribe"}},
	refused("parsable", "", none, forCommand),
	{"partition", "p", required, "text", "partition", nil},
	{"prefer", "", required, "text", "prefer", nil},
	{"priority", "", required, "priority", "priority", nil},
	{"profile", "", required, "list", "profile", map[string][]string{
		"none": {"NONE"}, "all": {"ENERGY", "TASK", "LUSTRE", "NETWORK"}, "energy": {"ENERGY"}, "task": {"TASK"}, "lustre": {"LUSTRE"}, "network": {"NETWORK"},
	}},
	{"propagate", "", optional, "words", "", words{"none": {}}}, // the limits of this process or of the browser mean nothing to the job
	{"qos", "q", required, "text", "qos", nil},
	refused("quiet", "Q", none, forCommand),
	{"reboot", "", none, "fixed", "reboot", true},
	{"requeue", "", optional, "words", "", words{"": {"requeue": true}, "expedite": {"requeue": true, "flags": []string{"EXPEDITED_REQUEUE"}}}},
	{"reservation", "", required, "text", "reservation", nil},
	{"resources", "", required, "text", "licenses", nil},
	refused("resv-ports", "", optional, noField),
	{"segment", "", required, "number", "segment_size", 1},
	{"signal", "", required, "signal", "", strings.Fields("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS")},
	{"sockets-per-node", "", required, "count", "sockets_per_node", 1},
	jobFlag("spread-job", "SPREAD_JOB"),
	jobFlag("spread-segments", "SPREAD_SEGMENTS"),
	jobFlag("stepmgr", "STEPMGR_ENABLED"),
	{"switches", "", required, "switches", "", nil},
	{"tasks-per-node", "", required, "count", "tasks_per_node", 1},
	refused("test-only", "", none, noField),
	{"thread-spec", "", required, "count", "thread_specification", 1},
	{"threads-per-core", "", required, "count", "threads_per_core", 1},
	{"time", "t", required, "minutes", "time_limit", nil},
	{"time-min", "", required, "minutes", "time_minimum", nil},
	{"tmp", "", required, "disk", "temporary_disk_per_node", nil},
	{"tres-bind", "", required, "text", "tres_bind", nil},
	{"tres-per-task", "", required, "text", "tres_per_task", nil},
	refused("uid", "", required, forIdentity),
	refused("usage", "", none, forCommand),
	jobFlag("use-min-nodes", "PREFER_MINIMUM_NODE_COUNT"),
	refused("verbose", "v", none, forCommand),
	refused("version", "V", none, forCommand),
	refused("wait", "W", none, forCommand),
	{"wait-all-nodes", "", required, "words", "", words{"0": {"wait_all_nodes": false}, "1": {"wait_all_nodes": true}}},
	{"wckey", "", required, "text", "wckey", nil},
	refused("wrap", "", required, forCommand),
}

// joined lists the fields to which several options contribute. Texts are joined
// by commas, and lists are concatenated. If an option is repeated, only its last
// value counts, as for all others.
var joined = []string{"flags", "licenses", "tres_per_node", "tres_per_task"}

// exclusive maps an option to others with which it can't be combined, because
// both set the same fields. Sbatch ignores --hint then.
var exclusive = map[string][]string{
	"hint": {"cores-per-socket", "extra-node-info", "ntasks-per-core", "sockets-per-node", "threads-per-core"},
}

// unchangeable contains the options that controllers ignore in a change of an
// existing job, or that have another meaning there. A value may be a hint.
var unchangeable = map[string]string{
	"acctg-freq": "", "array": "", "container": "", "container-id": "", "container-type": "", "context": "", "cpu-freq": "", "distribution": "", "export": "",
	"get-user-env": "", "gpu-bind": "", "hint": "", "mem-bind": "", "no-kill": "", "ntasks-per-core": "", "oom-kill-step": "", "open-mode": "",
	"overcommit": "", "profile": "", "propagate": "", "signal": "", "spread-job": "", "stepmgr": "", "wait-all-nodes": "", "chdir": "", "input": "",
	"hold": "use schedctl hold",
}

// hints contains hints for options that are not supported, in addition to those
// about the reason.
var hints = map[string]string{
	"wait":        "use schedctl submit --wait",
	"test-only":   "use schedctl submit --dry-run",
	"wrap":        "use schedctl submit --wrap 'COMMAND'",
	"parsable":    "schedctl submit prints only the id of the job",
	"quiet":       "schedctl submit prints only the id of the job",
	"uid":         "use a token of that user",
	"gid":         "use a token of a user with that group",
	"cluster":     "use --url to select the cluster",
	"clusters":    "use --url to select the cluster",
	"export-file": "set variables with --export",
	"nodefile":    "list the nodes with --nodelist",
	"bbf":         "write the burst buffer with --bb, or as lines of the script",
}

var reasonHints = map[string]string{
	forCommand: "it concerns the command sbatch and not the job",
	noField:    "the REST API has no such field",
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
		if o.syntax == "refused" {
			continue
		}
		name := "--" + o.name
		if o.letter != "" {
			name = "-" + o.letter + ", " + name
		}
		names = append(names, name)
	}
	return names
}

// IsOption reports whether sbatch has an option with this name, which may be a
// letter or an abbreviation.
func IsOption(name string) bool {
	o, candidates := find(name)
	return o != nil || len(candidates) > 0 || byLetter[name] != nil
}

// find returns the option with a long name, which may be abbreviated as long as
// it is unambiguous. If it is ambiguous, find returns the candidates.
func find(name string) (o *option, candidates []string) {
	if o := byName[name]; o != nil {
		return o, nil
	}
	for i := range options {
		if name != "" && strings.HasPrefix(options[i].name, name) {
			o = &options[i]
			candidates = append(candidates, "--"+o.name)
		}
	}
	if len(candidates) > 1 {
		return nil, candidates
	}
	return o, nil
}

// Table returns the table of options as JSON, for the status page.
func Table() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n\t\"options\": [\n")
	for i, o := range options {
		row, err := marshal([]any{o.name, o.letter, int(o.arg), o.syntax, o.field, o.detail})
		if err != nil {
			return nil, err
		}
		end := ","
		if i == len(options)-1 {
			end = ""
		}
		fmt.Fprintf(&b, "\t\t%s%s\n", row, end)
	}
	others, err := marshal(exclusive)
	if err != nil {
		return nil, err
	}
	fields, err := marshal(joined)
	if err != nil {
		return nil, err
	}
	variables, err := marshal(optionVariables)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "\t],\n\t\"joined\": %s,\n\t\"exclusive\": %s,\n\t\"variables\": %s\n}\n", fields, others, variables)
	return b.Bytes(), nil
}

func marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return bytes.TrimSuffix(text, []byte("\n")), err
}
