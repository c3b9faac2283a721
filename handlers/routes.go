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
func (h *handler) routes() []route {
	var routes []route
	if h.Content.Has(feature.Controller) {
		routes = append(routes,
			bind(api.GetPing, h.getPing),
			bind(api.GetNodes, h.getNodes),
			bind(api.GetNode, h.getNode),
			bind(api.GetPartitions, h.getPartitions),
			bind(api.GetPartition, h.getPartition),
			bind(api.GetJobs, h.getJobs),
			bind(api.GetJobStates, h.getJobStates),
			bind(api.GetJob, h.getJob),
			bind(api.GetReservations, h.getReservations),
			bind(api.GetReservation, h.getReservation),
			bind(api.GetLicenses, h.getLicenses),
			bind(api.GetShares, h.getShares),
			bind(api.GetDiag, h.getDiag),
			bind(api.DeleteJob, h.deleteJob),
			bind(api.OldDeleteJob, h.oldDeleteJob),
			bind(api.PostJobSubmit, h.postJobSubmit),
			bind(api.PostJobAllocate, h.postJobAllocate),
			bind(api.PostJob, h.postJob),
			bind(api.GetJobRequeue, h.getJobRequeue),
			bind(api.PostJobsRequeue, h.postJobsRequeue),
			bind(api.DeleteJobs, h.deleteJobs),
			bind(api.DeleteReservation, h.deleteReservation),
			bind(api.PostNode, h.postNode),
			bind(api.PostNodes, h.postNodes),
			bind(api.DeleteNode, h.deleteNode),
			bind(api.PostNewNode, h.postNewNode),
			bind(api.GetReconfigure, h.getReconfigure),
			bind(api.PostReservation, h.postReservation),
			bind(api.PostReservations, h.postReservations),
			bind(api.PostPartitions, h.postPartitions),
			bind(api.DeletePartition, h.deletePartition),
			bind(api.GetResources, h.getResources),
			bind(api.GetConf, h.getConf),
		)
	}
	if h.Content.Has(feature.Util) {
		routes = append(routes,
			bind(api.PostHostnames, h.postHostnames),
			bind(api.PostHostlist, h.postHostlist),
		)
	}
	if h.Content.Has(feature.Accounting) && h.Accounting != nil {
		routes = append(routes,
			bind(api.GetAccountingPing, h.getAccountingPing),
			bind(api.GetAccountingDiag, h.getAccountingDiag),
			bind(api.GetTRES, h.getTRES),
			bind(api.GetClusters, h.getClusters),
			bind(api.GetCluster, h.getCluster),
			bind(api.GetQOSList, h.getQOSList),
			bind(api.GetQOS, h.getQOS),
			bind(api.GetAccounts, h.getAccounts),
			bind(api.GetAccount, h.getAccount),
			bind(api.GetUsers, h.getUsers),
			bind(api.GetUser, h.getUser),
			bind(api.GetAssociations, h.getAssociations),
			bind(api.GetAssociation, h.getAssociations),
			bind(api.GetAccountingJobs, h.getAccountingJobs),
			bind(api.GetAccountingJob, h.getAccountingJob),
			bind(api.GetInstances, h.getInstances),
			bind(api.GetInstance, h.getInstances),
			bind(api.GetWCKeys, h.getWCKeys),
			bind(api.GetWCKey, h.getWCKey),
			bind(api.PostAccounts, h.postAccounts),
			bind(api.DeleteAccount, h.deleteAccount),
			bind(api.PostAccountsAssociation, h.postAccountsAssociation),
			bind(api.PostUsers, h.postUsers),
			bind(api.DeleteUser, h.deleteUser),
			bind(api.PostUsersAssociation, h.postUsersAssociation),
			bind(api.PostAssociations, h.postAssociations),
			bind(api.DeleteAssociations, h.deleteAssociations),
			bind(api.DeleteAssociation, h.deleteAssociation),
			bind(api.PostQOS, h.postQOS),
			bind(api.DeleteQOS, h.deleteQOS),
			bind(api.PostClusters, h.postClusters),
			bind(api.DeleteCluster, h.deleteCluster),
			bind(api.PostTRES, h.postTRES),
			bind(api.PostWCKeys, h.postWCKeys),
			bind(api.DeleteWCKey, h.deleteWCKey),
			bind(api.GetConfig, h.getConfig),
			bind(api.PostConfig, h.postConfig),
			bind(api.GetAccountingConf, h.getAccountingConf),
			bind(api.PostAccountingJob, h.postAccountingJob),
			bind(api.PostAccountingJobs, h.postAccountingJobs),
		)
	}
	return routes
}
