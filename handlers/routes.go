package handlers

import (
	"schedrestd/api"
	"schedrestd/internal/feature"
)

// New returns the server of all requests.
func New(cfg Config) *Server { return newHandler(cfg).server() }

func (h *handler) server() *Server {
	return NewServer(Service{Routes: h.routes(), Pages: h.pages(), Controller: h.Controller, Accounting: h.Accounting}, h.ServerConfig)
}

// routes returns all endpoints that the gateway serves. Only endpoints that
// package api declares can be listed here.
func (h *handler) routes() []Route {
	var routes []Route
	if h.Content.Has(feature.Controller) {
		routes = append(routes,
			Bind(api.GetPing, h.getPing),
			Bind(api.GetNodes, h.getNodes),
			Bind(api.GetNode, h.getNode),
			Bind(api.GetPartitions, h.getPartitions),
			Bind(api.GetPartition, h.getPartition),
			Bind(api.GetJobs, h.getJobs),
			Bind(api.GetJobStates, h.getJobStates),
			Bind(api.GetJob, h.getJob),
			Bind(api.GetReservations, h.getReservations),
			Bind(api.GetReservation, h.getReservation),
			Bind(api.GetLicenses, h.getLicenses),
			Bind(api.GetShares, h.getShares),
			Bind(api.GetDiag, h.getDiag),
			Bind(api.DeleteJob, h.deleteJob),
			Bind(api.OldDeleteJob, h.oldDeleteJob),
			Bind(api.PostJobSubmit, h.postJobSubmit),
			Bind(api.PostJobAllocate, h.postJobAllocate),
			Bind(api.PostJob, h.postJob),
			Bind(api.GetJobRequeue, h.getJobRequeue),
			Bind(api.PostJobsRequeue, h.postJobsRequeue),
			Bind(api.DeleteJobs, h.deleteJobs),
			Bind(api.DeleteReservation, h.deleteReservation),
			Bind(api.PostNode, h.postNode),
			Bind(api.PostNodes, h.postNodes),
			Bind(api.DeleteNode, h.deleteNode),
			Bind(api.PostNewNode, h.postNewNode),
			Bind(api.GetReconfigure, h.getReconfigure),
			Bind(api.PostReservation, h.postReservation),
			Bind(api.PostReservations, h.postReservations),
			Bind(api.PostPartitions, h.postPartitions),
			Bind(api.DeletePartition, h.deletePartition),
			Bind(api.GetResources, h.getResources),
			Bind(api.GetConf, h.getConf),
		)
	}
	if h.Content.Has(feature.Util) {
		routes = append(routes,
			Bind(api.PostHostnames, h.postHostnames),
			Bind(api.PostHostlist, h.postHostlist),
		)
	}
	if h.Content.Has(feature.Accounting) && h.Accounting != nil {
		routes = append(routes,
			Bind(api.GetAccountingPing, h.getAccountingPing),
			Bind(api.GetAccountingDiag, h.getAccountingDiag),
			Bind(api.GetTRES, h.getTRES),
			Bind(api.GetClusters, h.getClusters),
			Bind(api.GetCluster, h.getCluster),
			Bind(api.GetQOSList, h.getQOSList),
			Bind(api.GetQOS, h.getQOS),
			Bind(api.GetAccounts, h.getAccounts),
			Bind(api.GetAccount, h.getAccount),
			Bind(api.GetUsers, h.getUsers),
			Bind(api.GetUser, h.getUser),
			Bind(api.GetAssociations, h.getAssociations),
			Bind(api.GetAssociation, h.getAssociations),
			Bind(api.GetAccountingJobs, h.getAccountingJobs),
			Bind(api.GetAccountingJob, h.getAccountingJob),
			Bind(api.GetInstances, h.getInstances),
			Bind(api.GetInstance, h.getInstances),
			Bind(api.GetWCKeys, h.getWCKeys),
			Bind(api.GetWCKey, h.getWCKey),
			Bind(api.PostAccounts, h.postAccounts),
			Bind(api.DeleteAccount, h.deleteAccount),
			Bind(api.PostAccountsAssociation, h.postAccountsAssociation),
			Bind(api.PostUsers, h.postUsers),
			Bind(api.DeleteUser, h.deleteUser),
			Bind(api.PostUsersAssociation, h.postUsersAssociation),
			Bind(api.PostAssociations, h.postAssociations),
			Bind(api.DeleteAssociations, h.deleteAssociations),
			Bind(api.DeleteAssociation, h.deleteAssociation),
			Bind(api.PostQOS, h.postQOS),
			Bind(api.DeleteQOS, h.deleteQOS),
			Bind(api.PostClusters, h.postClusters),
			Bind(api.DeleteCluster, h.deleteCluster),
			Bind(api.PostTRES, h.postTRES),
			Bind(api.PostWCKeys, h.postWCKeys),
			Bind(api.DeleteWCKey, h.deleteWCKey),
			Bind(api.GetConfig, h.getConfig),
			Bind(api.PostConfig, h.postConfig),
			Bind(api.GetAccountingConf, h.getAccountingConf),
			Bind(api.PostAccountingJob, h.postAccountingJob),
			Bind(api.PostAccountingJobs, h.postAccountingJobs),
		)
	}
	return routes
}
