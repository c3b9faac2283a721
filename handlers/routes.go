package handlers

import (
	"schedrestd/api"
	"schedrestd/feature"
)

// routes returns all endpoints of the REST API. An endpoint that is not listed
// here is not served, and an endpoint without a declaration can't be listed.
func (h *handler) routes() []route {
	var routes []route
	if h.Content.Has(feature.Controller) {
		routes = append(routes,
			on(api.GetPing, h.getPing),
			on(api.GetNodes, h.getNodes),
			on(api.GetNode, h.getNode),
			on(api.GetPartitions, h.getPartitions),
			on(api.GetPartition, h.getPartition),
			on(api.GetJobs, h.getJobs),
			on(api.GetJobStates, h.getJobStates),
			on(api.GetJob, h.getJob),
			on(api.GetReservations, h.getReservations),
			on(api.GetReservation, h.getReservation),
			on(api.GetLicenses, h.getLicenses),
			on(api.GetShares, h.getShares),
			on(api.GetDiag, h.getDiag),
			on(api.DeleteJob, h.deleteJob),
			on(api.OldDeleteJob, h.oldDeleteJob),
			on(api.PostJobSubmit, h.postJobSubmit),
			on(api.PostJobAllocate, h.postJobAllocate),
			on(api.PostJob, h.postJob),
			on(api.GetJobRequeue, h.getJobRequeue),
			on(api.PostJobsRequeue, h.postJobsRequeue),
			on(api.DeleteJobs, h.deleteJobs),
			on(api.DeleteReservation, h.deleteReservation),
			on(api.PostNode, h.postNode),
			on(api.PostNodes, h.postNodes),
			on(api.DeleteNode, h.deleteNode),
			on(api.PostNewNode, h.postNewNode),
			on(api.GetReconfigure, h.getReconfigure),
			on(api.PostReservation, h.postReservation),
			on(api.PostReservations, h.postReservations),
			on(api.PostPartitions, h.postPartitions),
			on(api.DeletePartition, h.deletePartition),
			on(api.GetResources, h.getResources),
			on(api.GetConf, h.getConf),
			on(api.PostHostnames, h.postHostnames),
			on(api.PostHostlist, h.postHostlist),
		)
	}
	if h.Content.Has(feature.Accounting) && h.Accounting != nil {
		routes = append(routes,
			on(api.GetAccountingPing, h.getAccountingPing),
			on(api.GetAccountingDiag, h.getAccountingDiag),
			on(api.GetTRES, h.getTRES),
			on(api.GetClusters, h.getClusters),
			on(api.GetCluster, h.getCluster),
			on(api.GetQOSList, h.getQOSList),
			on(api.GetQOS, h.getQOS),
			on(api.GetAccounts, h.getAccounts),
			on(api.GetAccount, h.getAccount),
			on(api.GetUsers, h.getUsers),
			on(api.GetUser, h.getUser),
			on(api.GetAssociations, h.getAssociations),
			on(api.GetAssociation, h.getAssociations),
			on(api.GetAccountingJobs, h.getAccountingJobs),
			on(api.GetAccountingJob, h.getAccountingJob),
			on(api.GetInstances, h.getInstances),
			on(api.GetInstance, h.getInstances),
			on(api.GetWCKeys, h.getWCKeys),
			on(api.GetWCKey, h.getWCKey),
			on(api.PostAccounts, h.postAccounts),
			on(api.DeleteAccount, h.deleteAccount),
			on(api.PostAccountsAssociation, h.postAccountsAssociation),
			on(api.PostUsers, h.postUsers),
			on(api.DeleteUser, h.deleteUser),
			on(api.PostUsersAssociation, h.postUsersAssociation),
			on(api.PostAssociations, h.postAssociations),
			on(api.DeleteAssociations, h.deleteAssociations),
			on(api.DeleteAssociation, h.deleteAssociation),
			on(api.PostQOS, h.postQOS),
			on(api.DeleteQOS, h.deleteQOS),
			on(api.PostClusters, h.postClusters),
			on(api.DeleteCluster, h.deleteCluster),
			on(api.PostTRES, h.postTRES),
			on(api.PostWCKeys, h.postWCKeys),
			on(api.DeleteWCKey, h.deleteWCKey),
			on(api.GetConfig, h.getConfig),
			on(api.PostConfig, h.postConfig),
			on(api.GetAccountingConf, h.getAccountingConf),
			on(api.PostAccountingJob, h.postAccountingJob),
			on(api.PostAccountingJobs, h.postAccountingJobs),
		)
	}
	return routes
}

// route is the declaration of an endpoint and its handler. prepare parses the
// parameters and returns the function that does the work.
type route struct {
	*api.Endpoint
	prepare func(*call) (do func() error, err error)
}

func on[P any](op api.Operation[P], do func(*call, *P) error) route {
	return route{op.Endpoint, func(c *call) (func() error, error) {
		params, err := readParams(c, op.Params)
		return func() error { return do(c, params) }, err
	}}
}
