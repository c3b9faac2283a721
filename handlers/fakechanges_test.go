package handlers

import (
	"context"

	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// changes contains the changes that a fake was asked to make, and the fake's
// answers to such requests.
type changes struct {
	reservationUpdates []*model.ReservationUpdate
	partitionUpdates   []*model.PartitionUpdate
	layout             []model.ResourceLayout
	scripts            map[uint32]string // by job; an empty one means that the job has none
	allocating         bool              // whether allocations wait until their context ends
	refusals           map[string]error  // by name of the object to change
}

// record stores a change to the object with the given name.
func record[T any](f *fake, list *[]*T, u *T, call, name string, cred model.Credential) error {
	*list = append(*list, u)
	if err := f.logChange(call+" "+name, cred); err != nil {
		return err
	}
	return f.refusals[name]
}

func (f *fake) CreateReservation(_ context.Context, cred model.Credential, u *model.ReservationUpdate) error {
	return record(f, &f.reservationUpdates, u, "create reservation", u.Name, cred)
}

func (f *fake) UpdateReservation(_ context.Context, cred model.Credential, u *model.ReservationUpdate) error {
	return record(f, &f.reservationUpdates, u, "update reservation", u.Name, cred)
}

func (f *fake) CreatePartition(_ context.Context, cred model.Credential, u *model.PartitionUpdate) error {
	return record(f, &f.partitionUpdates, u, "create partition", u.Name, cred)
}

func (f *fake) UpdatePartition(_ context.Context, cred model.Credential, u *model.PartitionUpdate) error {
	return record(f, &f.partitionUpdates, u, "update partition", u.Name, cred)
}

func (f *fake) Estimate(_ context.Context, cred model.Credential, descs []model.JobDesc) (*model.Estimate, error) {
	if err := f.logCall("estimate", cred); err != nil {
		return nil, err
	}
	return &model.Estimate{Start: 1_700_000_000, Nodes: "node1", Partition: "debug", Processors: uint32(len(descs)), Preempted: []uint32{5}, UserMessage: "welcome"}, f.submitErr
}

func (f *fake) SubmitSeveral(ctx context.Context, cred model.Credential, descs []model.JobDesc) (*model.Submitted, error) {
	for i := range descs[1:] {
		f.submitted = append(f.submitted, &descs[i+1])
	}
	return f.Submit(ctx, cred, &descs[0])
}

func (f *fake) Allocate(ctx context.Context, cred model.Credential, descs []model.JobDesc) (*model.Submitted, error) {
	if f.allocating {
		<-ctx.Done()
		return nil, errs.New(errs.Unavailable, "job 17 was ended")
	}
	return f.SubmitSeveral(ctx, cred, descs)
}

func (f *fake) Configuration(_ context.Context, cred model.Credential, since model.Time) (*model.Configuration, error) {
	f.queries = append(f.queries, model.Query{Since: since})
	return &model.Configuration{
		LastUpdate: 1_795_000_000, BootTime: 1_794_000_000,
		Texts: map[string]string{"cluster_name": "demo", "version": "26.05.5", "sched_params": "a,b=2",
			"def_runtime_plugin": "runtime/oci", "serializer_params": "compact,no_tag", "serializer_plugins": "json", "slurmrestd_params": "conmgr_threads=4",
			"slurmrestd_http_auth_params": "jwks=/etc/jwks.json", "slurmstepd_params": "conmgr_use_poll"},
		Numbers:     map[string]uint64{"slurmctld_port": 6817, "max_mem_per_cpu": 512 | model.MemPerCPU, "priority_decay_hl": 604800, "slurmctld_debug": 3, "slurmd_syslog_debug": 10, "log_fmt": 8, "debug_flags": 0x200, "health_check_node_state": 0x1ff, "epilog_timeout": 0xfffe, "task_plugin_param": 0x4},
		Lists:       map[string][]string{"control_machine": {"c1", "c2"}, "control_addr": {"10.0.0.1", ""}, "prolog": {"/p"}},
		JobDefaults: []model.JobDefault{{Type: 1, Value: 4}},
	}, f.logCall("conf", cred)
}

func (f *fake) DeletePartition(_ context.Context, cred model.Credential, name string) error {
	return f.logChange("delete partition "+name, cred)
}

func (f *fake) BatchScript(_ context.Context, cred model.Credential, id uint32) (string, error) {
	script, ok := f.scripts[id]
	switch {
	case !ok:
		return "", errs.New(errs.NotFound, "there is no such job").WithNumber(slurmerror.InvalidJobID)
	case script == "":
		return "", errs.New(errs.Invalid, "the job has no script").WithNumber(slurmerror.NoScript)
	}
	return script, f.logCall("script", cred)
}

func (f *fake) ResourceLayout(_ context.Context, cred model.Credential, id uint32) ([]model.ResourceLayout, error) {
	return f.layout, f.logChange("resources", cred)
}
