package message

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// walks maps the name of each of the protocol's tables to the function that
// encodes and decodes its fields.
var walks = map[string]func(*codec.Codec){
	"header":                       new(Header).Walk,
	"addr":                         func(c *codec.Codec) { addr(c, new(Addr)) },
	"auth_cred":                    new(Credential).Walk,
	"return_code":                  new(RC).Walk,
	"return_code2":                 new(RCMessage).Walk,
	"job_array_errors_response":    new(JobArrayErrors).Walk,
	"node_info_request":            new(NodeInfoRequest).Walk,
	"node_info_single_request":     new(NodeInfoSingleRequest).Walk,
	"node_info_response":           new(NodeInfo).Walk,
	"node_info_record":             func(c *codec.Codec) { node(c, new(model.Node)) },
	"energy":                       func(c *codec.Codec) { energy(c, new(model.Energy)) },
	"partition_info_request":       new(PartitionInfoRequest).Walk,
	"partition_info_response":      new(PartitionInfo).Walk,
	"partition_info_record":        func(c *codec.Codec) { partition(c, new(model.Partition)) },
	"config_request":               new(ConfigFilesRequest).Walk,
	"config_response":              new(ConfigFiles).Walk,
	"config_file":                  func(c *codec.Codec) { configFile(c, new(model.ConfigFile)) },
	"job_defaults":                 func(c *codec.Codec) { jobDefault(c, new(model.JobDefault)) },
	"job_info_request":             new(JobInfoRequest).Walk,
	"job_info_single_request":      new(JobInfoSingleRequest).Walk,
	"job_info_response":            new(JobInfo).Walk,
	"job_info_record":              func(c *codec.Codec) { job(c, new(model.Job)) },
	"job_resources":                func(c *codec.Codec) { jobResources(c, new(model.JobResources), false) },
	"multi_core_data":              func(c *codec.Codec) { multiCore(c, new(model.MultiCore)) },
	"step_id":                      func(c *codec.Codec) { stepID(c, new(model.StepID)) },
	"job_desc":                     new(SubmitRequest).Walk,
	"cron_entry":                   func(c *codec.Codec) { cronEntry(c, new(model.CronEntry)) },
	"submit_response":              new(SubmitResponse).Walk,
	"will_run_response":            new(EstimateResponse).Walk,
	"kill_job":                     new(KillJob).Walk,
	"reservation_name":             new(ReservationName).Walk,
	"job_desc_list":                new(JobDescs).Walk,
	"resource_allocation_response": new(Allocation).Walk,
	"het_job_allocation_response":  new(Allocations).Walk,
	"job_alloc_info_request":       new(AllocationInfoRequest).Walk,
	"complete_job_allocation":      new(CompleteAllocation).Walk,
	"addr_array":                   func(c *codec.Codec) { addrArray(c, new([]Addr)) },
	"update_node":                  new(NodeUpdate).Walk,
	"update_reservation":           new(ReservationUpdate).Walk,
	"update_partition":             new(PartitionUpdate).Walk,
	"delete_partition":             new(PartitionName).Walk,
	"resource_layout_response":     new(ResourceLayout).Walk,
	"batch_script_response":        new(BatchScript).Walk,
	"node_resource_layout":         func(c *codec.Codec) { nodeLayout(c, new(model.ResourceLayout)) },
	"node_gres_layout":             func(c *codec.Codec) { gresLayout(c, new(model.GRESLayout)) },
	"requeue_request":              new(RequeueRequest).Walk,
	"auth_token_request":           new(TokenRequest).Walk,
	"auth_token_response":          new(TokenResponse).Walk,
	"dbd_persist_init":             new(PersistInit).Walk,
	"dbd_persist_rc":               new(PersistRC).Walk,
	"db_stats_msg":                 new(AccountingStats).Walk,
	"db_rollup_stats":              func(c *codec.Codec) { rollup(c, new(model.Rollup)) },
	"db_rpc_obj":                   func(c *codec.Codec) { callCount(c, new(model.CallCount)) },
}

// TestWalksAreTheTables compares the description of each record with the rows
// of the protocol's table, for every protocol version.
func TestWalksAreTheTables(t *testing.T) {
	for table, walk := range walks {
		t.Run(table, func(t *testing.T) {
			rows := readTable(t, table)
			for v := codec.Oldest; v <= codec.Newest; v++ {
				c := codec.NewDescriber(v)
				walk(c)
				if diff := cmp.Diff(rowsAt(rows, v), c.Rows()); diff != "" {
					t.Errorf("protocol %d (table -, walk +):\n%s", v, diff)
				}
			}
		})
	}
}

// numbers maps the names of messages in the protocol's lists to our type
// numbers.
var numbers = map[string]Type{
	"REQUEST_PING": RequestPing, "REQUEST_NODE_INFO": RequestNodeInfo, "RESPONSE_NODE_INFO": ResponseNodeInfo,
	"REQUEST_NODE_INFO_SINGLE": RequestNodeInfoSingle, "REQUEST_PARTITION_INFO": RequestPartitionInfo,
	"RESPONSE_PARTITION_INFO": ResponsePartitionInfo, "REQUEST_JOB_INFO": RequestJobInfo, "RESPONSE_JOB_INFO": ResponseJobInfo,
	"REQUEST_JOB_INFO_SINGLE": RequestJobInfoSingle, "REQUEST_UPDATE_JOB": RequestUpdateJob, "REQUEST_RECONFIGURE": RequestReconfigure, "REQUEST_DELETE_RESERVATION": RequestDeleteReservation,
	"REQUEST_UPDATE_NODE": RequestUpdateNode, "REQUEST_DELETE_NODE": RequestDeleteNode, "REQUEST_CREATE_NODE": RequestCreateNode, "REQUEST_JOB_REQUEUE": RequestJobRequeue, "REQUEST_SUBMIT_BATCH_JOB": RequestSubmitBatchJob,
	"RESPONSE_SUBMIT_BATCH_JOB": ResponseSubmitBatchJob, "REQUEST_KILL_JOB": RequestKillJob,
	"REQUEST_RESOURCE_ALLOCATION": RequestAllocation, "RESPONSE_RESOURCE_ALLOCATION": ResponseAllocation, "REQUEST_JOB_ALLOCATION_INFO": RequestAllocationInfo, "RESPONSE_JOB_ALLOCATION_INFO": ResponseAllocationInfo,
	"REQUEST_HET_JOB_ALLOCATION": RequestHetAllocation, "RESPONSE_HET_JOB_ALLOCATION": ResponseHetAllocation, "REQUEST_HET_JOB_ALLOC_INFO": RequestHetAllocationInfo, "REQUEST_SUBMIT_BATCH_HET_JOB": RequestSubmitHetJob,
	"REQUEST_COMPLETE_JOB_ALLOCATION": RequestCompleteAllocation,
	"REQUEST_CREATE_PARTITION":        RequestCreatePartition, "REQUEST_DELETE_PARTITION": RequestDeletePartition, "REQUEST_UPDATE_PARTITION": RequestUpdatePartition,
	"REQUEST_CREATE_RESERVATION": RequestCreateReservation, "RESPONSE_CREATE_RESERVATION": ResponseReservationName, "REQUEST_UPDATE_RESERVATION": RequestUpdateReservation,
	"REQUEST_CONFIG": RequestConfigFiles, "RESPONSE_CONFIG": ResponseConfigFiles,
	"REQUEST_BATCH_SCRIPT": RequestBatchScript, "RESPONSE_BATCH_SCRIPT": ResponseBatchScript,
	"REQUEST_RESOURCE_LAYOUT": RequestResourceLayout, "RESPONSE_RESOURCE_LAYOUT": ResponseResourceLayout,
	"REQUEST_AUTH_TOKEN": RequestAuthToken, "RESPONSE_AUTH_TOKEN": ResponseAuthToken, "RESPONSE_SLURM_RC": ResponseRC,
	"DBD_FINI": AccountingFini, "DBD_GET_STATS": AccountingGetStats,
}

// TestNumbers compares the type numbers of the messages with the protocol's
// lists.
func TestNumbers(t *testing.T) {
	got := map[string]Type{}
	for _, file := range []string{"rpc", "dbd_rpc"} {
		for _, f := range readTSV(t, file) {
			pairs := [][2]string{{f[0], f[1]}}
			if file == "rpc" {
				pairs = append(pairs, [2]string{f[3], f[4]})
			} else {
				pairs = append(pairs, [2]string{f[3], "answer to " + f[1]}) // the list has only numbers for these
			}
			for _, p := range pairs {
				if _, known := numbers[p[1]]; known {
					n, err := strconv.Atoi(p[0])
					if err != nil {
						t.Fatal(err)
					}
					got[p[1]] = Type(n)
				}
			}
		}
	}
	if diff := cmp.Diff(numbers, got); diff != "" {
		t.Errorf("ours -, the protocol's +:\n%s", diff)
	}
}

type tableRow struct {
	codec.Row
	min, max codec.Version // a max of 0 means no end
}

func readTable(t *testing.T, name string) []tableRow {
	t.Helper()
	var rows []tableRow
	for _, f := range readTSV(t, name) {
		r := tableRow{Row: codec.Row{Field: f[1], Type: f[2]}}
		lo, err := strconv.Atoi(f[3])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.min = codec.Version(lo)
		if len(f) > 4 && f[4] != "" {
			hi, err := strconv.Atoi(f[4])
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r.max = codec.Version(hi)
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		t.Fatalf("table %s has no rows", name)
	}
	return rows
}

func rowsAt(rows []tableRow, v codec.Version) []codec.Row {
	var at []codec.Row
	for _, r := range rows {
		if r.min <= v && (r.max == 0 || v < r.max) {
			at = append(at, r.Row)
		}
	}
	return at
}

func readTSV(t *testing.T, name string) [][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "tables", name+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(b)) {
		rows = append(rows, strings.Split(strings.TrimRight(line, "\n"), "\t"))
	}
	return rows[1:]
}

// TestEveryTableHasAWalk checks that the map walks contains every table, except
// those that are lists of numbers.
func TestEveryTableHasAWalk(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "tables", "*.tsv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".tsv")
		switch _, has := walks[name]; {
		case name == "rpc", name == "dbd_rpc", name == "errors": // these are lists of numbers
		case !has:
			t.Errorf("walks has none for %s", name)
		}
	}
}
