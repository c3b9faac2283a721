package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// BuildInfoRequest requests the controller's configuration (table
// last_update_request).
type BuildInfoRequest struct {
	LastUpdate model.Time // the configuration is returned only if it changed after this time; if 0, always
}

// Walk encodes or decodes the fields in wire order.
func (m *BuildInfoRequest) Walk(c *codec.Codec) { c.Time("last_update", &m.LastUpdate) }

// BuildInfo answers BuildInfoRequest (table conf_response). It has the fields
// that this project needs. If Config is not nil, a decoder stores most of the
// other fields in Config. An encoder sends the other fields empty.
type BuildInfo struct {
	LastUpdate  model.Time
	BootTime    model.Time
	ClusterName string
	Version     string               // release of Slurm, "24.11.5"
	Config      *model.Configuration // for the other fields; nil to skip them
}

// Walk encodes or decodes the fields in wire order.
func (m *BuildInfo) Walk(c *codec.Codec) {
	k := keeper{c, m.Config}
	c.Time("last_update", &m.LastUpdate)
	keep16(k, "accounting_storage_enforce")
	keepTexts(k, "accounting_storage_backup_host", "accounting_storage_host", "accounting_storage_ext_host",
		"accounting_storage_params")
	keep16(k, "accounting_storage_port")
	keepTexts(k, "accounting_storage_tres", "accounting_storage_type")
	if c.Until(codec.V2511) {
		keepTexts(k, "accounting_storage_user")
	}
	skipRecords(c, "acct_gather_conf", "config_key_pair", configPair)
	keepTexts(k, "acct_gather_energy_type", "acct_gather_filesystem_type", "acct_gather_interconnect_type")
	keep16(k, "acct_gather_node_freq")
	keepTexts(k, "acct_gather_profile_type", "authalttypes", "authalt_params", "authinfo", "authtype")
	keep16(k, "batch_start_timeout")
	c.Time("boot_time", &m.BootTime)
	keepTexts(k, "bb_type", "bcast_exclude", "bcast_parameters")
	if c.Since(codec.V2505) {
		keepTexts(k, "certmgr_params", "certmgr_type")
	}
	skipRecords(c, "cgroup_conf", "config_key_pair", configPair)
	if c.Since(codec.V2511) {
		keepTexts(k, "cli_filter_params")
	}
	keepTexts(k, "cli_filter_plugins")
	c.String("cluster_name", &m.ClusterName)
	keepTexts(k, "comm_params")
	keep16(k, "complete_wait")
	keep32(k, "conf_flags")
	keepLists(k, "control_addr", "control_machine")
	if c.Until(codec.V2405) {
		keepTexts(k, "core_spec_plugin")
	}
	keep32(k, "cpu_freq_def", "cpu_freq_govs")
	keepTexts(k, "cred_type")
	if c.Since(codec.V2411) {
		keepTexts(k, "data_parser_parameters")
	}
	keep64(k, "def_mem_per_cpu", "debug_flags")
	keepTexts(k, "dependency_params")
	if c.Since(codec.V2611) {
		keepTexts(k, "def_runtime_plugin")
	}
	keep16(k, "eio_timeout", "enforce_part_limits")
	if c.Until(codec.V2405) {
		keepTexts(k, "epilog")
	}
	if c.Since(codec.V2405) {
		keepLists(k, "epilog")
	}
	keep32(k, "epilog_msg_time")
	if c.Until(codec.V2405) {
		keepTexts(k, "epilog_slurmctld")
		skipRecords(c, "ext_sensors_conf", "config_key_pair", configPair)
		keepTexts(k, "ext_sensors_type")
		keep16(k, "ext_sensors_freq")
	}
	if c.Since(codec.V2405) {
		keepLists(k, "epilog_slurmctld")
	}
	if c.Since(codec.V2505) {
		keep16(k, "epilog_timeout")
	}
	keepTexts(k, "fed_params")
	keep32(k, "first_job_id")
	keep16(k, "fs_dampening_factor")
	if c.Until(codec.V2505) {
		keep16(k, "get_env_timeout")
	}
	keepTexts(k, "gres_plugins")
	keep16(k, "group_time", "group_force")
	keepTexts(k, "gpu_freq_def")
	if c.Since(codec.V2405) {
		keepTexts(k, "hash_plugin")
	}
	keep32(k, "hash_val")
	keep16(k, "health_check_interval", "health_check_node_state")
	keepTexts(k, "health_check_program")
	if c.Since(codec.V2605) {
		keep16(k, "health_check_timeout")
	}
	if c.Since(codec.V2511) {
		keepTexts(k, "http_parser_type")
	}
	keep16(k, "inactive_limit")
	keepTexts(k, "interactive_step_opts", "job_acct_gather_freq", "job_acct_gather_type",
		"job_acct_gather_params", "job_comp_host", "job_comp_loc", "job_comp_params")
	keep32(k, "job_comp_port")
	keepTexts(k, "job_comp_type", "job_comp_user")
	if c.Until(codec.V2511) {
		keepTexts(k, "job_container_plugin")
	}
	if c.Until(codec.V2311) {
		keepTexts(k, "job_credential_private_key", "job_credential_public_certificate")
	}
	if c.Since(codec.V2511) {
		keepTexts(k, "namespace_plugin")
	}
	keepDefaults(k)
	keep16(k, "job_file_append", "job_requeue")
	keepTexts(k, "job_submit_plugins")
	keep16(k, "kill_on_bad_exit", "kill_wait")
	keepTexts(k, "launch_params")
	if c.Until(codec.V2302) {
		keepTexts(k, "launch_type")
	}
	if c.Since(codec.V2605) {
		keepTexts(k, "license_params")
	}
	keepTexts(k, "licenses")
	keep16(k, "log_fmt")
	keep32(k, "max_array_sz")
	if c.Since(codec.V2302) {
		keep32(k, "max_batch_requeue")
	}
	keep32(k, "max_dbd_msgs")
	keepTexts(k, "mail_domain", "mail_prog")
	keep32(k, "max_job_cnt", "max_job_id")
	keep64(k, "max_mem_per_cpu")
	keep32(k, "max_node_cnt", "max_step_cnt")
	keep16(k, "max_tasks_per_node")
	keepTexts(k, "mcs_plugin", "mcs_plugin_params")
	if c.Since(codec.V2605) {
		keepTexts(k, "metrics_auth_users", "metrics_params")
	}
	if c.Since(codec.V2511) {
		keepTexts(k, "metrics_type")
	}
	keep32(k, "min_job_age")
	skipRecords(c, "mpi_conf", "config_key_pair", configPair)
	keepTexts(k, "mpi_default", "mpi_params")
	keep16(k, "msg_timeout")
	keep32(k, "next_job_id")
	skipRecords(c, "node_features_conf", "config_plugin_params", pluginParams)
	keepTexts(k, "node_features_plugins")
	if c.Until(codec.V2505) {
		keepTexts(k, "node_prefix")
	}
	keep16(k, "over_time_limit")
	keepTexts(k, "plugindir", "plugstack")
	if c.Until(codec.V2405) {
		keepTexts(k, "power_parameters", "power_plugin")
	}
	keep16(k, "preempt_mode")
	if c.Since(codec.V2302) {
		keepTexts(k, "preempt_params")
	}
	keepTexts(k, "preempt_type")
	keep32(k, "preempt_exempt_time")
	keepTexts(k, "prep_params", "prep_plugins")
	keep32(k, "priority_decay_hl", "priority_calc_period")
	keep16(k, "priority_favor_small", "priority_flags")
	keep32(k, "priority_max_age")
	keepTexts(k, "priority_params")
	keep16(k, "priority_reset_period")
	keepTexts(k, "priority_type")
	keep32(k, "priority_weight_age", "priority_weight_assoc", "priority_weight_fs", "priority_weight_js",
		"priority_weight_part", "priority_weight_qos")
	keepTexts(k, "priority_weight_tres")
	keep16(k, "private_data")
	keepTexts(k, "proctrack_type")
	if c.Until(codec.V2405) {
		keepTexts(k, "prolog")
	}
	if c.Since(codec.V2405) {
		keepLists(k, "prolog")
	}
	if c.Until(codec.V2505) {
		keep16(k, "prolog_epilog_timeout")
	}
	if c.Until(codec.V2405) {
		keepTexts(k, "prolog_slurmctld")
	}
	if c.Since(codec.V2405) {
		keepLists(k, "prolog_slurmctld")
	}
	if c.Since(codec.V2505) {
		keep16(k, "prolog_timeout")
	}
	keep16(k, "prolog_flags", "propagate_prio_process")
	keepTexts(k, "propagate_rlimits", "propagate_rlimits_except", "reboot_program")
	keep16(k, "reconfig_flags")
	keepTexts(k, "requeue_exit", "requeue_exit_hold", "resume_fail_program", "resume_program")
	keep16(k, "resume_rate", "resume_timeout")
	keepTexts(k, "resv_epilog")
	keep16(k, "resv_over_run")
	keepTexts(k, "resv_prolog")
	keep16(k, "ret2service")
	if c.Until(codec.V2311) {
		keepTexts(k, "route_plugin")
	}
	keepTexts(k, "sched_params", "sched_logfile")
	keep16(k, "sched_log_level", "sched_time_slice")
	keepTexts(k, "schedtype", "scron_params", "select_type")
	skipRecords(c, "select_conf_key_pairs", "config_key_pair", configPair)
	keep16(k, "select_type_param")
	if c.Since(codec.V2611) {
		keepTexts(k, "serializer_params", "serializer_plugins")
	}
	keepTexts(k, "slurm_conf")
	keep32(k, "slurm_user_id")
	keepTexts(k, "slurm_user_name")
	keep32(k, "slurmd_user_id")
	keepTexts(k, "slurmd_user_name", "slurmctld_addr")
	keep16(k, "slurmctld_debug")
	if c.Since(codec.V2605) {
		keepTexts(k, "slurmctld_http_auth_params")
	}
	keepTexts(k, "slurmctld_logfile", "slurmctld_params", "slurmctld_pidfile")
	if c.Until(codec.V2302) {
		keepTexts(k, "slurmctld_plugstack")
		skipRecords(c, "slurmctld_plugstack_conf", "config_plugin_params", pluginParams)
	}
	keep32(k, "slurmctld_port")
	keep16(k, "slurmctld_port_count")
	keepTexts(k, "slurmctld_primary_off_prog", "slurmctld_primary_on_prog")
	keep16(k, "slurmctld_syslog_debug", "slurmctld_timeout", "slurmd_debug")
	if c.Since(codec.V2605) {
		keepTexts(k, "slurmd_http_auth_params")
	}
	keepTexts(k, "slurmd_logfile", "slurmd_params", "slurmd_pidfile")
	keep32(k, "slurmd_port")
	keepTexts(k, "slurmd_spooldir")
	keep16(k, "slurmd_syslog_debug", "slurmd_timeout")
	if c.Since(codec.V2611) {
		keepTexts(k, "slurmrestd_http_auth_params", "slurmrestd_params", "slurmstepd_params")
	}
	keepTexts(k, "srun_epilog")
	keep16(k, "srun_port_range[0]", "srun_port_range[1]")
	keepTexts(k, "srun_prolog", "state_save_location", "suspend_exc_nodes", "suspend_exc_parts")
	if c.Since(codec.V2302) {
		keepTexts(k, "suspend_exc_states")
	}
	keepTexts(k, "suspend_program")
	keep16(k, "suspend_rate")
	keep32(k, "suspend_time")
	keep16(k, "suspend_timeout")
	keepTexts(k, "switch_param", "switch_type", "task_epilog", "task_prolog", "task_plugin")
	keep32(k, "task_plugin_param")
	keep16(k, "tcp_timeout")
	if c.Since(codec.V2505) {
		keepTexts(k, "tls_params")
	}
	if c.Since(codec.V2405) {
		keepTexts(k, "tls_type")
	}
	keepTexts(k, "tmp_fs", "topology_param", "topology_plugin")
	keep16(k, "tree_width")
	keepTexts(k, "unkillable_program")
	keep16(k, "unkillable_timeout")
	if c.Since(codec.V2511) {
		keepTexts(k, "url_parser_type")
	}
	c.String("version", &m.Version)
	keep16(k, "vsize_factor", "wait_time")
	keepTexts(k, "x11_params")
}

func configPair(c *codec.Codec, _ *struct{}) { skipTexts(c, "name", "value") }

func pluginParams(c *codec.Codec, _ *struct{}) {
	skipTexts(c, "name")
	skipRecords(c, "key_pairs", "config_key_pair", configPair)
}

// A keeper encodes or decodes fields of a configuration. If config is not nil,
// the keeper stores the fields in config.
type keeper struct {
	*codec.Codec
	config *model.Configuration
}

func skipTexts(c *codec.Codec, names ...string) { skip(names, c.String) }

func keepTexts(k keeper, names ...string) {
	if k.config == nil {
		skip(names, k.String)
		return
	}
	if k.config.Texts == nil {
		k.config.Texts = map[string]string{}
	}
	walkInto(names, k.config.Texts, k.String)
}

func keepLists(k keeper, names ...string) {
	if k.config == nil {
		skip(names, k.Strings)
		return
	}
	if k.config.Lists == nil {
		k.config.Lists = map[string][]string{}
	}
	walkInto(names, k.config.Lists, k.Strings)
}

func keep16(k keeper, names ...string) { keepNumbers(k, names, k.Uint16) }
func keep32(k keeper, names ...string) { keepNumbers(k, names, k.Uint32) }
func keep64(k keeper, names ...string) { keepNumbers(k, names, k.Uint64) }

func keepNumbers[T uint16 | uint32 | uint64](k keeper, names []string, walk func(string, *T)) {
	for _, name := range names {
		var n T
		if walk(name, &n); k.config == nil {
			continue
		}
		if k.config.Numbers == nil {
			k.config.Numbers = map[string]uint64{}
		}
		k.config.Numbers[name] = uint64(n)
	}
}

func keepDefaults(k keeper) {
	var defaults []model.JobDefault
	codec.List(k.Codec, "job_defaults_list", "job_defaults", &defaults, jobDefault)
	if k.config != nil {
		k.config.JobDefaults = defaults
	}
}

// walkInto encodes or decodes the fields with the given names. It stores each
// value in the map values, under the name of the field.
func walkInto[T any](names []string, values map[string]T, walk func(string, *T)) {
	for _, name := range names {
		var value T
		walk(name, &value)
		values[name] = value
	}
}

func skip[T any](names []string, walk func(string, *T)) {
	for _, name := range names {
		var unused T
		walk(name, &unused)
	}
}

func skipRecords[T any](c *codec.Codec, name, table string, walk func(*codec.Codec, *T)) {
	var unused []T
	codec.List(c, name, table, &unused, walk)
}
