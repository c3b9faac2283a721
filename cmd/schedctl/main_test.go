package main

import (
	"bytes"
	"testing"
)

// TestWrongCommandLines checks the errors about words before the name of a
// command, and their exit status.
func TestWrongCommandLines(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--verbose", "jobs"}, "error: unknown flag: --verbose\nhint: the options of a command follow its name, as in schedctl jobs --verbose\n"},
		{[]string{"jbos"}, "error: unknown command \"jbos\"\nhint: did you mean jobs?\n"},
		{[]string{"foo"}, "error: unknown command \"foo\"\nhint: schedctl --help lists the commands\n"}, // two letters of three differ from job
		{[]string{"part"}, "error: unknown command \"part\"\nhint: did you mean partitions?\n"},
		{[]string{"Histroy"}, "error: unknown command \"Histroy\"\nhint: did you mean history?\n"},
		{[]string{"nonsense"}, "error: unknown command \"nonsense\"\nhint: schedctl --help lists the commands\n"},
		{[]string{"squeue"}, "error: unknown command \"squeue\"\nhint: schedctl jobs lists jobs\n"},
		{[]string{"squeue", "-u", "alice"}, "error: unknown command \"squeue\"\nhint: schedctl jobs lists jobs\n"},
		{[]string{"sinfo"}, "error: unknown command \"sinfo\"\nhint: schedctl partitions and schedctl nodes list them\n"},
		{[]string{"scancel", "12"}, "error: unknown command \"scancel\"\nhint: schedctl cancel ends jobs\n"},
		{[]string{"qos"}, "error: unknown command \"qos\"\nhint: schedctl show qos lists the QOS\n"},
		{[]string{"sacct"}, "error: unknown command \"sacct\"\nhint: schedctl history lists jobs in the accounting records\n"},
		{[]string{"logs"}, "error: unknown command \"logs\"\nhint: schedctl output ID prints the output of a job, and --follow follows it\n"},
		{[]string{"cancle"}, "error: unknown command \"cancle\"\nhint: schedctl --help lists the commands\n"},
		{[]string{"queue"}, "error: unknown command \"queue\"\nhint: schedctl jobs lists jobs\n"},
		{[]string{"requeu"}, "error: unknown command \"requeu\"\nhint: schedctl --help lists the commands\n"},
		{[]string{"jobs", "--stat"}, "error: jobs: unknown flag: --stat\nhint: did you mean --state? See schedctl jobs --help\n"},
		{[]string{"jobs", "--zzzzzz"}, "error: jobs: unknown flag: --zzzzzz\nhint: see schedctl jobs --help\n"},
		{[]string{"jobs", "-t", "PENDNG"}, "error: --state PENDNG: unknown state\nhint: did you mean PENDING? All states: " + allStates + "\n"},
		{[]string{"jobs", "-t", "xyzzy"}, "error: --state xyzzy: unknown state\nhint: states are " + allStates + "\n"},
		{[]string{"token", "--bogus"}, "error: unknown flag: --bogus\nhint: see schedctl token --help\n"},
	} {
		var out, errOut bytes.Buffer
		if status := run(tt.args, &out, &errOut); status != 2 || errOut.String() != tt.want || out.Len() > 0 {
			t.Errorf("%q: status %d, %s%s", tt.args, status, &out, &errOut)
		}
	}
}

const allStates = "BOOT_FAIL, CANCELLED, COMPLETED, COMPLETING, CONFIGURING, DEADLINE, EXPEDITING, FAILED, LAUNCH_FAILED, NODE_FAIL, OUT_OF_MEMORY, PENDING, " +
	"POWER_UP_NODE, PREEMPTED, REQUEUED, REQUEUE_FED, REQUEUE_HOLD, RESIZING, RESV_DEL_HOLD, RUNNING, SIGNALING, SPECIAL_EXIT, STAGE_OUT, STOPPED, SUSPENDED, TIMEOUT"

// TestCompletedOptions checks that a completion describes an option in plain
// words.
func TestCompletedOptions(t *testing.T) {
	var out, errOut bytes.Buffer
	run([]string{"__complete", "jobs", "--stat"}, &out, &errOut)
	if want := "--state\tjobs in these STATES, such as PENDING or R\n:4\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}
