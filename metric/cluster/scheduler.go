package cluster

import "schedrestd/model"

// schedulerMeasures contains the metrics of the controller and its scheduler.
// The durations of cycles are in microseconds.
var schedulerMeasures = append([]measure[model.ControllerStats]{
	stat("server_thread_cnt", "Threads of the controller that serve requests.", func(s *model.ControllerStats) uint32 { return s.ServerThreads }),
	stat("agent_cnt", "Agents that send messages to nodes.", func(s *model.ControllerStats) uint32 { return s.Agents }),
	stat("agent_thread_cnt", "Threads of the agents that send messages to nodes.", func(s *model.ControllerStats) uint32 { return s.AgentThreads }),
	stat("agent_queue_size", "Messages that wait to be sent to nodes again.", func(s *model.ControllerStats) uint32 { return s.AgentQueueSize }),
	stat("slurmdbd_queue_size", "Messages that wait to be sent to the accounting daemon.", func(s *model.ControllerStats) uint32 { return s.AccountingQueueSize }),
	stat("sched_stats_timestamp", "Unix time of these statistics.", func(s *model.ControllerStats) model.Time { return s.RequestTime }),
	stat("last_proc_req_start", "Unix time at which the statistics began.", func(s *model.ControllerStats) model.Time { return s.StatsStart }),
	stat("sdiag_latency", "Time that 1,000 readings of the clock take, in microseconds.", func(s *model.ControllerStats) uint32 { return s.GetTimeLatency }),
	stat("sdiag_jobs_submitted", "Jobs that were submitted.", func(s *model.ControllerStats) uint32 { return s.JobsSubmitted }),
	stat("sdiag_jobs_started", "Jobs that were started.", func(s *model.ControllerStats) uint32 { return s.JobsStarted }),
	stat("sdiag_jobs_completed", "Jobs that were completed.", func(s *model.ControllerStats) uint32 { return s.JobsCompleted }),
	stat("sdiag_jobs_canceled", "Jobs that were cancelled.", func(s *model.ControllerStats) uint32 { return s.JobsCanceled }),
	stat("sdiag_jobs_failed", "Jobs that failed.", func(s *model.ControllerStats) uint32 { return s.JobsFailed }),
	stat("sdiag_jobs_pending", "Jobs that waited at the time sdiag_job_states_ts.", func(s *model.ControllerStats) uint32 { return s.JobsPending }),
	stat("sdiag_jobs_running", "Jobs that ran at the time sdiag_job_states_ts.", func(s *model.ControllerStats) uint32 { return s.JobsRunning }),
	stat("sdiag_job_states_ts", "Unix time when waiting and running jobs were counted.", func(s *model.ControllerStats) model.Time { return s.JobStatesTime }),

	stat("schedule_cycle_cnt", "Cycles of the scheduler.", func(s *model.ControllerStats) uint32 { return s.Schedule.CycleCounter }),
	stat("schedule_cycle_depth", "Total number of jobs that the scheduler's cycles looked at.", func(s *model.ControllerStats) uint32 { return s.Schedule.CycleDepth }),
	stat("schedule_cycle_last", "Time of the scheduler's last cycle, in microseconds.", func(s *model.ControllerStats) uint32 { return s.Schedule.CycleLast }),
	stat("schedule_cycle_max", "Time of the scheduler's longest cycle, in microseconds.", func(s *model.ControllerStats) uint32 { return s.Schedule.CycleMax }),
	stat("schedule_cycle_tot", "Total time of the scheduler's cycles, in microseconds.", func(s *model.ControllerStats) uint64 { return s.Schedule.CycleSum }),
	stat("schedule_queue_len", "Jobs that waited at the scheduler's last cycle.", func(s *model.ControllerStats) uint32 { return s.Schedule.QueueLen }),
	mean("sched_mean_cycle", "Mean time of the scheduler's cycles, in microseconds.", cycles, func(s *model.ControllerStats) uint64 { return s.Schedule.CycleSum }),
	mean("sched_mean_depth_cycle", "Mean number of jobs that the scheduler's cycles looked at.", cycles, func(s *model.ControllerStats) uint64 { return uint64(s.Schedule.CycleDepth) }),

	stat("bf_active", "1 while the backfill scheduler runs.", func(s *model.ControllerStats) uint32 {
		if s.Backfill.Active {
			return 1
		}
		return 0
	}),
	stat("backfilled_jobs", "Jobs that the backfill scheduler has started since the controller's start.", func(s *model.ControllerStats) uint32 { return s.Backfill.Jobs }),
	stat("last_backfilled_jobs", "Jobs that the backfill scheduler has started since last_proc_req_start.", func(s *model.ControllerStats) uint32 { return s.Backfill.LastJobs }),
	stat("backfilled_het_jobs", "Components of heterogeneous jobs that the backfill scheduler started.", func(s *model.ControllerStats) uint32 { return s.Backfill.HetJobs }),
	stat("bf_cycle_cnt", "Cycles of the backfill scheduler.", func(s *model.ControllerStats) uint32 { return s.Backfill.CycleCounter }),
	stat("bf_cycle_last", "Time of the backfill scheduler's last cycle, in microseconds.", func(s *model.ControllerStats) uint32 { return s.Backfill.CycleLast }),
	stat("bf_cycle_max", "Time of the backfill scheduler's longest cycle, in microseconds.", func(s *model.ControllerStats) uint32 { return s.Backfill.CycleMax }),
	stat("bf_cycle_tot", "Total time of the backfill scheduler's cycles, in microseconds.", func(s *model.ControllerStats) uint64 { return s.Backfill.CycleSum }),
	stat("bf_when_last_cycle", "Unix time of the backfill scheduler's last cycle.", func(s *model.ControllerStats) model.Time { return s.Backfill.WhenLastCycle }),
	stat("bf_last_depth", "Jobs that the backfill scheduler's last cycle looked at.", func(s *model.ControllerStats) uint32 { return s.Backfill.LastDepth }),
	stat("bf_last_depth_try", "Jobs that the backfill scheduler's last cycle tried to start.", func(s *model.ControllerStats) uint32 { return s.Backfill.LastDepthTry }),
	stat("bf_depth_tot", "Total number of jobs that the backfill scheduler's cycles looked at.", func(s *model.ControllerStats) uint32 { return s.Backfill.DepthSum }),
	stat("bf_depth_try_tot", "Total number of jobs that the backfill scheduler's cycles tried to start.", func(s *model.ControllerStats) uint32 { return s.Backfill.DepthTrySum }),
	stat("bf_queue_len", "Jobs that waited at the backfill scheduler's last cycle.", func(s *model.ControllerStats) uint32 { return s.Backfill.QueueLen }),
	stat("bf_queue_len_tot", "Total number of jobs that waited at the backfill scheduler's cycles.", func(s *model.ControllerStats) uint32 { return s.Backfill.QueueLenSum }),
	stat("bf_table_size", "Time slots that the backfill scheduler's last cycle tried.", func(s *model.ControllerStats) uint32 { return s.Backfill.TableSize }),
	stat("bf_table_size_tot", "Total number of time slots that the backfill scheduler's cycles tried.", func(s *model.ControllerStats) uint32 { return s.Backfill.TableSizeSum }),
	mean("bf_mean_cycle", "Mean time of the backfill scheduler's cycles, in microseconds.", backfills, func(s *model.ControllerStats) uint64 { return s.Backfill.CycleSum }),
	mean("bf_depth_mean", "Mean number of jobs that the backfill scheduler's cycles looked at.", backfills, func(s *model.ControllerStats) uint64 { return uint64(s.Backfill.DepthSum) }),
	mean("bf_try_depth_mean", "Mean number of jobs that the backfill scheduler's cycles tried to start.", backfills, func(s *model.ControllerStats) uint64 { return uint64(s.Backfill.DepthTrySum) }),
	mean("bf_queue_len_mean", "Mean number of jobs that waited at the backfill scheduler's cycles.", backfills, func(s *model.ControllerStats) uint64 { return uint64(s.Backfill.QueueLenSum) }),
	mean("bf_mean_table_sz", "Mean number of time slots that the backfill scheduler's cycles tried.", backfills, func(s *model.ControllerStats) uint64 { return uint64(s.Backfill.TableSizeSum) }),
}, exits()...)

func cycles(s *model.ControllerStats) uint32    { return s.Schedule.CycleCounter }
func backfills(s *model.ControllerStats) uint32 { return s.Backfill.CycleCounter }

// exits returns one metric for each reason why a scheduling cycle can end. Its
// value is the number of cycles that ended for this reason.
func exits() (list []measure[model.ControllerStats]) {
	add := func(name, help string, get func(*model.ControllerStats) []uint32, reason int) {
		list = append(list, stat(name, help, func(s *model.ControllerStats) uint32 {
			if exits := get(s); reason < len(exits) {
				return exits[reason]
			}
			return 0
		}))
	}
	for i, e := range [][2]string{
		{"end", "at the end of the queue"}, {"max_depth", "at default_queue_depth"}, {"max_job_start", "at sched_max_job_start"},
		{"lic", "for lack of licenses"}, {"rpc_cnt", "at max_rpc_cnt"}, {"timeout", "at max_sched_time"},
	} {
		add("sched_exit_"+e[0], "Cycles of the scheduler that ended "+e[1]+".", func(s *model.ControllerStats) []uint32 { return s.Schedule.Exits }, i)
	}
	for i, e := range [][2]string{
		{"end", "at the end of the queue"}, {"max_job_start", "at bf_max_job_start"}, {"max_job_test", "at bf_max_job_test"},
		{"state_changed", "because something changed"}, {"table_limit", "at bf_node_space_size"}, {"timeout", "at bf_max_time"},
	} {
		add("bf_exit_"+e[0], "Cycles of the backfill scheduler that ended "+e[1]+".", func(s *model.ControllerStats) []uint32 { return s.Backfill.Exits }, i)
	}
	return list
}

func stat[N uint32 | uint64 | model.Time](name, help string, get func(*model.ControllerStats) N) measure[model.ControllerStats] {
	return measure[model.ControllerStats]{name, help, func(s *model.ControllerStats) float64 { return float64(get(s)) }}
}

// mean returns a metric whose value is a mean, rounded down: the result of the
// function sum divided by the result of the function count.
func mean(name, help string, count func(*model.ControllerStats) uint32, sum func(*model.ControllerStats) uint64) measure[model.ControllerStats] {
	return stat(name, help, func(s *model.ControllerStats) uint64 {
		if count(s) == 0 {
			return 0
		}
		return sum(s) / uint64(count(s))
	})
}
