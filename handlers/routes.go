package handlers

import "schedrestd/api"

// route joins what an endpoint is with what it does.
type route struct {
	*api.Endpoint
	do func(*call) error
}

// routes is the table of contents of the REST surface: an endpoint that is not here
// does not exist, and one without a declaration can't be here.
func (h *handler) routes() []route {
	routes := []route{
		{&api.GetPing, h.getPing},
		{&api.GetNodes, h.getNodes},
		{&api.GetNode, h.getNode},
		{&api.GetJobs, h.getJobs},
		{&api.GetJob, h.getJob},
		{&api.DeleteJob, h.deleteJob},
		{&api.PostJobSubmit, h.postJobSubmit},
	}
	if h.Accounting != nil {
		routes = append(routes,
			route{&api.GetAccountingPing, h.getAccountingPing},
			route{&api.GetAccountingDiag, h.getAccountingDiag},
		)
	}
	return routes
}
