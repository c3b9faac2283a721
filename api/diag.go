package api

import (
	"schedrestd/api/schema"
	"schedrestd/model"
)

// ControllerStatsRow contains the controller's statistics, and a Users value
// that translates the user ids in the statistics to names.
type ControllerStatsRow struct {
	*model.ControllerStats
	Users Users
}

type statsField = schema.Field[ControllerStatsRow]

// ControllerStats declares the fields of the statistics that the controller
// keeps about itself.
var ControllerStats = schema.Object("stats_msg", func() schema.Fields[ControllerStatsRow] {
	return schema.Fields[ControllerStatsRow]{
		schema.Show("parts_packed", schema.Int32, partsPacked, "1 if a controller of Slurm 25.05 or earlier reports complete statistics", schema.Bare, schema.Until(V43)),
		schema.Show("parts_packed", schema.Int32, func(*ControllerStatsRow) int { return 0 }, "No longer used", schema.Bare, schema.Since(V43), schema.Deprecated(V43), schema.Until(V45)),
		schema.F("req_time", moment, func(s *ControllerStatsRow) *model.Time { return &s.RequestTime }, "Time of these statistics", schema.Unit(UnixTime)),
		schema.F("req_time_start", moment, func(s *ControllerStatsRow) *model.Time { return &s.StatsStart }, "Start of the counting period", schema.Unit(UnixTime)),
		statsCount("server_thread_count", func(s *ControllerStatsRow) *uint32 { return &s.ServerThreads }, "Number of requests in progress"),
		statsCount("agent_queue_size", func(s *ControllerStatsRow) *uint32 { return &s.AgentQueueSize }, "Number of messages that wait to be sent to nodes again"),
		statsCount("agent_count", func(s *ControllerStatsRow) *uint32 { return &s.Agents }, "Number of messages being sent to nodes"),
		statsCount("agent_thread_count", func(s *ControllerStatsRow) *uint32 { return &s.AgentThreads }, "Number of threads that send messages to nodes"),
		statsCount("dbd_agent_queue_size", func(s *ControllerStatsRow) *uint32 { return &s.AccountingQueueSize }, "Number of messages that wait for the accounting daemon"),
		statsTime("gettimeofday_latency", func(s *ControllerStatsRow) *uint32 { return &s.GetTimeLatency }, "Duration of 1000 reads of the clock"),
		statsTime("schedule_cycle_max", func(s *ControllerStatsRow) *uint32 { return &s.Schedule.CycleMax }, "Longest cycle of the main scheduler"),
		statsTime("schedule_cycle_last", func(s *ControllerStatsRow) *uint32 { return &s.Schedule.CycleLast }, "Duration of the last cycle"),
		schema.F("schedule_cycle_sum", schema.Int32, func(s *ControllerStatsRow) *uint64 { return &s.Schedule.CycleSum }, "Total duration of all cycles", schema.Unit("µs"), schema.Since(V41), schema.Until(V43)),
		schema.F("schedule_cycle_sum", schema.Int64, func(s *ControllerStatsRow) *uint64 { return &s.Schedule.CycleSum }, "Total duration of all cycles", schema.Unit("µs"), schema.Since(V43)),
		statsCount("schedule_cycle_total", func(s *ControllerStatsRow) *uint32 { return &s.Schedule.CycleCounter }, "Number of cycles"),
		schema.Show("schedule_cycle_mean", schema.Int64, func(s *ControllerStatsRow) uint64 { return mean(s.Schedule.CycleSum, s.Schedule.CycleCounter) }, "Average duration of a cycle", schema.Unit("µs")),
		statsMean("schedule_cycle_mean_depth", func(s *ControllerStatsRow) (uint32, uint32) { return s.Schedule.CycleDepth, s.Schedule.CycleCounter }, "Average number of jobs examined in a cycle"),
		schema.Show("schedule_cycle_per_minute", schema.Int64, cyclesPerMinute, "Number of cycles in a minute, on average", schema.Count),
		statsCount("schedule_cycle_depth", func(s *ControllerStatsRow) *uint32 { return &s.Schedule.CycleDepth }, "Number of jobs examined in all cycles", schema.Since(V41)),
		schema.F("schedule_exit", scheduleExit.Type, func(s *ControllerStatsRow) *[]uint32 { return &s.Schedule.Exits }, "Numbers of cycles, by the reason for which they ended"),
		statsCount("schedule_queue_length", func(s *ControllerStatsRow) *uint32 { return &s.Schedule.QueueLen }, "Number of pending jobs in the last cycle"),
		statsCount("jobs_submitted", func(s *ControllerStatsRow) *uint32 { return &s.JobsSubmitted }, "Number of jobs submitted"),
		statsCount("jobs_started", func(s *ControllerStatsRow) *uint32 { return &s.JobsStarted }, "Number of jobs started"),
		statsCount("jobs_completed", func(s *ControllerStatsRow) *uint32 { return &s.JobsCompleted }, "Number of jobs that ended"),
		statsCount("jobs_canceled", func(s *ControllerStatsRow) *uint32 { return &s.JobsCanceled }, "Number of jobs cancelled"),
		statsCount("jobs_failed", func(s *ControllerStatsRow) *uint32 { return &s.JobsFailed }, "Number of jobs that failed because of the cluster"),
		statsCount("jobs_pending", func(s *ControllerStatsRow) *uint32 { return &s.JobsPending }, "Number of pending jobs"),
		statsCount("jobs_running", func(s *ControllerStatsRow) *uint32 { return &s.JobsRunning }, "Number of running jobs"),
		schema.F("job_states_ts", moment, func(s *ControllerStatsRow) *model.Time { return &s.JobStatesTime }, "Time when jobs_pending and jobs_running were counted", schema.Unit(UnixTime)),
		statsCount("bf_backfilled_jobs", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.Jobs }, "Number of jobs started by backfill since the controller started"),
		statsCount("bf_last_backfilled_jobs", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.LastJobs }, "Number of jobs started by backfill since the last reset"),
		statsCount("bf_backfilled_het_jobs", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.HetJobs }, "Number of components of heterogeneous jobs started by backfill since the controller started"),
		statsCount("bf_cycle_counter", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.CycleCounter }, "Number of backfill cycles"),
		schema.Show("bf_cycle_mean", schema.Int64, func(s *ControllerStatsRow) uint64 { return mean(s.Backfill.CycleSum, s.Backfill.CycleCounter) }, "Average duration of a cycle", schema.Unit("µs")),
		statsMean("bf_depth_mean", func(s *ControllerStatsRow) (uint32, uint32) { return s.Backfill.DepthSum, s.Backfill.CycleCounter }, "Average number of jobs examined in a cycle"),
		statsMean("bf_depth_mean_try", func(s *ControllerStatsRow) (uint32, uint32) {
			return s.Backfill.DepthTrySum, s.Backfill.CycleCounter
		}, "Average number of examined jobs that could have started"),
		schema.F("bf_cycle_sum", schema.Int64, func(s *ControllerStatsRow) *uint64 { return &s.Backfill.CycleSum }, "Total duration of all cycles", schema.Unit("µs")),
		statsTime("bf_cycle_last", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.CycleLast }, "Duration of the last cycle"),
		statsTime("bf_cycle_max", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.CycleMax }, "Longest cycle", schema.Since(V41)),
		schema.F("bf_exit", backfillExit.Type, func(s *ControllerStatsRow) *[]uint32 { return &s.Backfill.Exits }, "Numbers of cycles, by the reason for which they ended"),
		statsCount("bf_last_depth", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.LastDepth }, "Number of jobs examined in the last cycle"),
		statsCount("bf_last_depth_try", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.LastDepthTry }, "Number of jobs that were examined and could have started, in the last cycle"),
		statsCount("bf_depth_sum", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.DepthSum }, "Number of jobs examined in all cycles"),
		statsCount("bf_depth_try_sum", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.DepthTrySum }, "Number of jobs that were examined and could have started, in all cycles"),
		statsCount("bf_queue_len", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.QueueLen }, "Number of pending jobs in the last cycle"),
		statsMean("bf_queue_len_mean", queueLength, "Average number of pending jobs in a cycle"),
		statsCount("bf_queue_len_sum", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.QueueLenSum }, "Number of pending jobs, summed over all cycles"),
		statsCount("bf_table_size", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.TableSize }, "Number of time slots tried in the last cycle"),
		statsCount("bf_table_size_sum", func(s *ControllerStatsRow) *uint32 { return &s.Backfill.TableSizeSum }, "Number of time slots tried in all cycles", schema.Since(V41)),
		statsMean("bf_table_size_mean", queueLength, "The same as bf_queue_len_mean: a number of jobs, despite the name"),
		schema.F("bf_when_last_cycle", moment, func(s *ControllerStatsRow) *model.Time { return &s.Backfill.WhenLastCycle }, "Time of the last cycle", schema.Unit(UnixTime)),
		schema.F("bf_active", schema.Boolean, func(s *ControllerStatsRow) *bool { return &s.Backfill.Active }, "Whether a cycle is running now"),
		schema.F("rpcs_by_message_type", rpcList("stats_msg_rpcs_by_type", rpcType), func(s *ControllerStatsRow) *[]model.RPCTypeStats { return &s.RPCTypes }, "Requests, by kind"),
		schema.Show("rpcs_by_user", rpcList("stats_msg_rpcs_by_user", rpcUser), rpcUsers, "Requests, by user"),
		schema.F("pending_rpcs", rpcList("stats_msg_rpcs_queue", rpcQueue), func(s *ControllerStatsRow) *[]model.PendingRPCs { return &s.PendingRPCs }, "Messages that wait to be sent to nodes, by kind", schema.Since(V41)),
		schema.F("pending_rpcs_by_hostlist", rpcList("stats_msg_rpcs_dump", rpcDump), func(s *ControllerStatsRow) *[]model.PendingHosts { return &s.PendingHosts }, "Messages that wait to be sent to nodes, by kind, with the names of these nodes", schema.Since(V41)),
	}
})

func statsCount(name string, at func(*ControllerStatsRow) *uint32, doc string, opts ...schema.Option) statsField {
	return schema.F(name, schema.Int32, at, doc, append(opts, schema.Count)...)
}

func statsTime(name string, at func(*ControllerStatsRow) *uint32, doc string, opts ...schema.Option) statsField {
	return schema.F(name, schema.Int32, at, doc, append(opts, schema.Unit("µs"))...)
}

// statsMean returns a field with a mean.
func statsMean(name string, sumAndCount func(*ControllerStatsRow) (sum, count uint32), doc string) statsField {
	return schema.Show(name, schema.Int64, func(s *ControllerStatsRow) uint64 {
		sum, count := sumAndCount(s)
		return mean(uint64(sum), count)
	}, doc, schema.Count)
}

func partsPacked(s *ControllerStatsRow) int {
	if s.Parts {
		return 1
	}
	return 0
}

// queueLength returns the two numbers from which the mean length of the
// backfill queue is computed. slurmrestd also shows this mean as
// bf_table_size_mean.
func queueLength(s *ControllerStatsRow) (sum, count uint32) {
	return s.Backfill.QueueLenSum, s.Backfill.CycleCounter
}

func mean(sum uint64, count uint32) uint64 { return sum / max(1, uint64(count)) }

// cyclesPerMinute returns the average number of scheduling cycles per minute.
// During the first minute of the counting period it returns 0.
func cyclesPerMinute(s *ControllerStatsRow) uint64 {
	minutes := (s.RequestTime - s.StatsStart) / 60
	if minutes <= 0 {
		return 0
	}
	return uint64(s.Schedule.CycleCounter) / uint64(minutes)
}

// exits declares an object with one field for each reason why a scheduling
// cycle can end. Each field contains the number of cycles that ended for that
// reason. The protocol sends these numbers as a list, in which the reason is
// the index.
func exits(name string, fields ...schema.Field[[]uint32]) *schema.ObjectType[[]uint32] {
	return schema.Object(name, func() schema.Fields[[]uint32] { return fields })
}

func exit(name string, reason int, doc string) schema.Field[[]uint32] {
	return schema.Show(name, schema.Int32, func(counts *[]uint32) uint32 {
		if reason < len(*counts) {
			return (*counts)[reason]
		}
		return 0
	}, "Number of cycles that ended "+doc, schema.Count)
}

var scheduleExit = exits("schedule_exit_fields",
	exit("end_job_queue", 0, "at the end of the queue"),
	exit("default_queue_depth", 1, "at the limit of examined jobs"),
	exit("max_job_start", 2, "at the limit of started jobs"),
	exit("licenses", 3, "for lack of licenses"),
	exit("max_rpc_cnt", 4, "because of waiting requests"),
	exit("max_sched_time", 5, "at their time limit"),
)

var backfillExit = exits("bf_exit_fields",
	exit("end_job_queue", 0, "at the end of the queue"),
	exit("bf_max_job_start", 1, "at the limit of started jobs"),
	exit("bf_max_job_test", 2, "at the limit of examined jobs"),
	exit("state_changed", 3, "because something changed"),
	exit("bf_node_space_size", 4, "because the table was full"),
	exit("bf_max_time", 5, "at their time limit"),
)
