package worker

import (
	"context"
	"syscall"

	"schedrestd/auth"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/message"
)

// controller is the client as the handlers want it: credentials of auth in, the flags
// that the REST surface always asks with.
type controller struct{ *client.Client }

// credential hands a judged credential on. The kernel's word travels as the zero
// value: the controller asks the kernel itself.
func credential(c auth.Credential) client.Credential {
	return client.Credential{Token: c.Token, ActAs: c.ActAs}
}

func (c controller) Vouch(ctx context.Context, cred auth.Credential) error {
	return c.Client.Vouch(ctx, credential(cred))
}

func (c controller) Ping(ctx context.Context, cred auth.Credential) ([]model.Ping, error) {
	return c.Client.Ping(ctx, credential(cred))
}

func (c controller) Nodes(ctx context.Context, cred auth.Credential, each func(*model.Node) error) (model.Time, error) {
	return c.Client.Nodes(ctx, credential(cred), message.NodeInfoRequest{ShowFlags: message.ShowAll | message.ShowDetail}, each)
}

func (c controller) Node(ctx context.Context, cred auth.Credential, name string) (*model.Node, model.Time, error) {
	return c.Client.Node(ctx, credential(cred), name, message.ShowAll|message.ShowDetail)
}

func (c controller) Partitions(ctx context.Context, cred auth.Credential, each func(*model.Partition) error) error {
	_, err := c.Client.Partitions(ctx, credential(cred), message.PartitionInfoRequest{ShowFlags: message.ShowAll}, each)
	return err
}

func (c controller) Jobs(ctx context.Context, cred auth.Credential, each func(*model.Job) error) (model.JobTimes, error) {
	return c.Client.Jobs(ctx, credential(cred), message.JobInfoRequest{ShowFlags: message.ShowAll | message.ShowDetail}, each)
}

func (c controller) Job(ctx context.Context, cred auth.Credential, id uint32) ([]model.Job, model.JobTimes, error) {
	return c.Client.Job(ctx, credential(cred), id, message.ShowDetail)
}

func (c controller) Submit(ctx context.Context, cred auth.Credential, desc *model.JobDesc) (*model.Submitted, error) {
	return c.Client.Submit(ctx, credential(cred), desc)
}

func (c controller) Cancel(ctx context.Context, cred auth.Credential, id string) error {
	return c.Client.Kill(ctx, credential(cred), id, uint16(syscall.SIGKILL), 0)
}

// accounting is the client's other half, likewise.
type accounting struct{ *client.Client }

func (a accounting) Vouch(ctx context.Context, cred auth.Credential) error {
	return a.VouchAccounting(ctx, credential(cred))
}

func (a accounting) Ping(ctx context.Context, cred auth.Credential) ([]model.Ping, error) {
	return a.AccountingPing(ctx, credential(cred))
}

func (a accounting) Stats(ctx context.Context, cred auth.Credential) (*model.AccountingStats, error) {
	return a.AccountingStats(ctx, credential(cred))
}
