package handlers

import (
	"maps"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/feature"
)

// New returns the server of all requests.
func New(cfg Config) *rest.Server { return newHandler(cfg).server() }

func (h *handler) server() *rest.Server {
	service := rest.Service{Routes: h.routes(), Pages: h.pages(), Controller: h.Controller, Accounting: h.Accounting}
	if h.Levels != nil {
		service.CheckMember = newLevels(h.Levels).checkMember
	}
	return rest.NewServer(service, h.Config.Config)
}

// routes returns all endpoints that the gateway serves. Only endpoints that
// package api declares can be listed here.
func (h *handler) routes() []rest.Route {
	var routes []rest.Route
	if h.Content.Has(feature.Controller) {
		routes = append(routes,
			rest.Bind(api.GetPing, h.getPing),
			rest.Bind(api.GetNodes, h.getNodes),
			rest.Bind(api.GetNode, h.getNode),
			rest.Bind(api.GetPartitions, h.getPartitions),
			rest.Bind(api.GetPartition, h.getPartition),
			rest.Bind(api.GetJobs, h.getJobs),
			rest.Bind(api.GetJobStates, h.getJobStates),
			rest.Bind(api.GetJobPriorities, h.getJobPriorities),
			rest.Bind(api.GetJob, h.getJob),
			rest.Bind(api.GetJobStdout, h.getJobOutput(false)),
			rest.Bind(api.GetJobStderr, h.getJobOutput(true)),
			rest.Bind(api.GetJobScript, h.getJobScript),
			rest.Bind(api.GetReservations, h.getReservations),
			rest.Bind(api.GetReservation, h.getReservation),
			rest.Bind(api.GetLicenses, h.getLicenses),
			rest.Bind(api.GetShares, h.getShares),
			rest.Bind(api.GetDiag, h.getDiag),
			rest.Bind(api.DeleteJob, h.deleteJob),
			rest.Bind(api.OldDeleteJob, h.oldDeleteJob),
			rest.Bind(api.PostJobSubmit, h.postJobSubmit),
			rest.Bind(api.PostJobAllocate, h.postJobAllocate),
			rest.Bind(api.PostJob, h.postJob),
			rest.Bind(api.GetJobRequeue, h.getJobRequeue),
			rest.Bind(api.PostJobsRequeue, h.postJobsRequeue),
			rest.Bind(api.DeleteJobs, h.deleteJobs),
			rest.Bind(api.DeleteReservation, h.deleteReservation),
			rest.Bind(api.PostNode, h.postNode),
			rest.Bind(api.PostNodes, h.postNodes),
			rest.Bind(api.DeleteNode, h.deleteNode),
			rest.Bind(api.PostNewNode, h.postNewNode),
			rest.Bind(api.GetReconfigure, h.getReconfigure),
			rest.Bind(api.PostReservation, h.postReservation),
			rest.Bind(api.PostReservations, h.postReservations),
			rest.Bind(api.PostPartitions, h.postPartitions),
			rest.Bind(api.DeletePartition, h.deletePartition),
			rest.Bind(api.GetResources, h.getResources),
			rest.Bind(api.GetConf, h.getConf),
			rest.Bind(api.GetGatewayTokens, h.getGatewayTokens),
			rest.Bind(api.PostGatewayTokens, h.postGatewayTokens),
			rest.Bind(api.DeleteGatewayTokens, h.deleteGatewayTokens),
			rest.Bind(api.DeleteGatewayToken, h.deleteGatewayToken),
		)
	}
	if h.Content.Has(feature.Util) {
		routes = append(routes,
			rest.Bind(api.PostHostnames, h.postHostnames),
			rest.Bind(api.PostHostlist, h.postHostlist),
		)
	}
	if h.Content.Has(feature.Accounting) && h.Accounting != nil {
		routes = append(routes,
			rest.Bind(api.GetAccountingPing, h.getAccountingPing),
			rest.Bind(api.GetAccountingDiag, h.getAccountingDiag),
			rest.Bind(api.GetTRES, h.getTRES),
			rest.Bind(api.GetClusters, h.getClusters),
			rest.Bind(api.GetCluster, h.getCluster),
			rest.Bind(api.GetQOSList, h.getQOSList),
			rest.Bind(api.GetQOS, h.getQOS),
			rest.Bind(api.GetAccounts, h.getAccounts),
			rest.Bind(api.GetAccount, h.getAccount),
			rest.Bind(api.GetUsers, h.getUsers),
			rest.Bind(api.GetUser, h.getUser),
			rest.Bind(api.GetAssociations, h.getAssociations),
			rest.Bind(api.GetAssociation, h.getAssociations),
			rest.Bind(api.GetAccountingJobs, h.getAccountingJobs),
			rest.Bind(api.GetAccountingJob, h.getAccountingJob),
			rest.Bind(api.GetInstances, h.getInstances),
			rest.Bind(api.GetInstance, h.getInstances),
			rest.Bind(api.GetUsage, h.getUsage),
			rest.Bind(api.GetWCKeys, h.getWCKeys),
			rest.Bind(api.GetWCKey, h.getWCKey),
			rest.Bind(api.PostAccounts, h.postAccounts),
			rest.Bind(api.DeleteAccount, h.deleteAccount),
			rest.Bind(api.PostAccountsAssociation, h.postAccountsAssociation),
			rest.Bind(api.PostUsers, h.postUsers),
			rest.Bind(api.DeleteUser, h.deleteUser),
			rest.Bind(api.PostUsersAssociation, h.postUsersAssociation),
			rest.Bind(api.PostAssociations, h.postAssociations),
			rest.Bind(api.DeleteAssociations, h.deleteAssociations),
			rest.Bind(api.DeleteAssociation, h.deleteAssociation),
			rest.Bind(api.PostQOS, h.postQOS),
			rest.Bind(api.DeleteQOS, h.deleteQOS),
			rest.Bind(api.PostClusters, h.postClusters),
			rest.Bind(api.DeleteCluster, h.deleteCluster),
			rest.Bind(api.PostTRES, h.postTRES),
			rest.Bind(api.PostWCKeys, h.postWCKeys),
			rest.Bind(api.DeleteWCKey, h.deleteWCKey),
			rest.Bind(api.GetConfig, h.getConfig),
			rest.Bind(api.PostConfig, h.postConfig),
			rest.Bind(api.GetAccountingConf, h.getAccountingConf),
			rest.Bind(api.PostAccountingJob, h.postAccountingJob),
			rest.Bind(api.PostAccountingJobs, h.postAccountingJobs),
		)
	}
	return routes
}

// pages returns the pages outside of the API. The keys are their paths, without
// the leading slash.
func (h *handler) pages() map[string]rest.Page {
	pages := map[string]rest.Page{
		"healthz": {ID: "healthz", Quiet: true, Do: h.getHealth},
		"livez":   {ID: "livez", Quiet: true, Do: h.getHealth},
		"readyz":  {ID: "readyz", Quiet: true, Do: h.getReadiness},
	}
	maps.Copy(pages, h.documentPages())
	maps.Copy(pages, h.apiPages())
	maps.Copy(pages, h.statusPages())
	maps.Copy(pages, h.rootPages())
	maps.Copy(pages, h.clusterPages())
	return pages
}

// Pages returns the names of all pages, as the log and the metrics use them.
func Pages() (names []string) {
	for _, p := range newHandler(Config{}).pages() {
		names = append(names, p.ID)
	}
	return names
}
