package message

import (
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// init adds more messages of the controller to the lists that the tests use.
func init() {
	add(walks, map[string]func(*codec.Codec){
		"reservation_info_request":  new(ReservationInfoRequest).Walk,
		"reservation_info_response": new(ReservationInfo).Walk,
		"reservation_info_record":   func(c *codec.Codec) { reservation(c, new(model.Reservation)) },
		"license_info_request":      new(LicenseInfoRequest).Walk,
		"license_info_response":     new(LicenseInfo).Walk,
		"stats_request":             new(StatsRequest).Walk,
		"stats_response":            new(ControllerStats).Walk,
		"shares_request":            new(SharesRequest).Walk,
		"shares_response":           new(Shares).Walk,
		"assoc_shares_record":       func(c *codec.Codec) { share(c, new(model.Share)) },
		"priority_factors_response": new(Priorities).Walk,
		"priority_factors_object":   func(c *codec.Codec) { jobPriority(c, new(model.JobPriority)) },
		"job_state_request":         new(JobStateRequest).Walk,
		"job_state_response":        new(JobStates).Walk,
		"job_user_info_request":     new(JobUserInfoRequest).Walk,
		"selected_step":             func(c *codec.Codec) { selectedStep(c, new(model.SelectedStep)) },
		"kill_jobs":                 new(KillJobs).Walk,
		"last_update_request":       new(BuildInfoRequest).Walk,
		"conf_response":             new(BuildInfo).Walk,
		"config_key_pair":           func(c *codec.Codec) { configPair(c, nil) },
		"config_plugin_params":      func(c *codec.Codec) { pluginParams(c, nil) },
		"kill_jobs_response":        new(KillJobsResponse).Walk,
		"assoc_mgr_info_request":    new(LimitsRequest).Walk,
		"assoc_mgr_info_response":   new(Limits).Walk,
		"db_assoc_rec_with_usage":   func(c *codec.Codec) { assocLimits(c, new(model.AssocLimits)) },
		"db_assoc_usage":            func(c *codec.Codec) { assocUsage(c, new(model.AssocUsage)) },
		"db_qos_rec_with_usage":     func(c *codec.Codec) { qosLimits(c, new(model.QOSLimits)) },
		"db_qos_usage":              func(c *codec.Codec) { qosUsage(c, new(model.QOSUsage)) },
		"db_used_limits":            func(c *codec.Codec) { usedLimits(c, new(model.UsedLimits)) },
	})
	add(numbers, map[string]Type{
		"REQUEST_RESERVATION_INFO": RequestReservationInfo, "RESPONSE_RESERVATION_INFO": ResponseReservationInfo,
		"REQUEST_LICENSE_INFO": RequestLicenseInfo, "RESPONSE_LICENSE_INFO": ResponseLicenseInfo,
		"REQUEST_BUILD_INFO": RequestBuildInfo, "RESPONSE_BUILD_INFO": ResponseBuildInfo,
		"REQUEST_STATS_INFO": RequestStats, "RESPONSE_STATS_INFO": ResponseStats,
		"REQUEST_SHARE_INFO": RequestShares, "RESPONSE_SHARE_INFO": ResponseShares,
		"REQUEST_PRIORITY_FACTORS": RequestPriorities, "RESPONSE_PRIORITY_FACTORS": ResponsePriorities,
		"REQUEST_JOB_STATE": RequestJobState, "RESPONSE_JOB_STATE": ResponseJobState,
		"REQUEST_JOB_USER_INFO":  RequestJobUserInfo,
		"REQUEST_ASSOC_MGR_INFO": RequestLimits, "RESPONSE_ASSOC_MGR_INFO": ResponseLimits,
		"REQUEST_KILL_JOBS": RequestKillJobs, "RESPONSE_KILL_JOBS": ResponseKillJobs,
	})
	add(messages, map[string]func() Body{
		"ReservationInfoRequest": func() Body { return new(ReservationInfoRequest) },
		"ReservationInfo":        func() Body { return new(ReservationInfo) },
		"LicenseInfoRequest":     func() Body { return new(LicenseInfoRequest) },
		"LicenseInfo":            func() Body { return new(LicenseInfo) },
		"StatsRequest":           func() Body { return new(StatsRequest) },
		"ControllerStats":        func() Body { return new(ControllerStats) },
		"BuildInfoRequest":       func() Body { return new(BuildInfoRequest) },
		"BuildInfo":              func() Body { return new(BuildInfo) },
		"SharesRequest":          func() Body { return new(SharesRequest) },
		"Shares":                 func() Body { return new(Shares) },
		"Priorities":             func() Body { return new(Priorities) },
		"JobStateRequest":        func() Body { return new(JobStateRequest) },
		"JobStates":              func() Body { return new(JobStates) },
		"JobUserInfoRequest":     func() Body { return new(JobUserInfoRequest) },
		"KillJobs":               func() Body { return new(KillJobs) },
		"KillJobsResponse":       func() Body { return new(KillJobsResponse) },
		"LimitsRequest":          func() Body { return new(LimitsRequest) },
		"Limits":                 func() Body { return new(Limits) },
	})
	add(bodies, map[string]func() Body{
		"1022": func() Body { return new(LicenseInfo) },
		"2023": func() Body { return new(Shares) },
		"2025": func() Body { return new(ReservationInfo) },
		"2036": func() Body { return new(ControllerStats) },
	})
	comparable = append(comparable, cmpopts.IgnoreUnexported(codec.Stream[model.Reservation]{}, codec.Stream[model.License]{},
		codec.Stream[model.Share]{}, codec.Stream[model.AssocLimits]{}, codec.Stream[model.QOSLimits]{}, codec.Stream[model.User]{}, codec.Stream[model.JobPriority]{}, codec.Stream[model.JobStateEntry]{}, codec.Stream[model.KillResult]{}))
	fuzzed = append(fuzzed, "ReservationInfo", "LicenseInfo", "ControllerStats", "Shares", "JobStates", "KillJobs", "KillJobsResponse", "BuildInfo", "Limits", "Priorities")
}

// add adds the elements of more to list. It panics if list already has an
// element with the same name.
func add[K ~string, V any](list, more map[K]V) {
	for name, v := range more {
		if _, exists := list[name]; exists {
			panic(string(name) + " is in the list already")
		}
		list[name] = v
	}
}
