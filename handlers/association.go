package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

func (h *handler) getAssociations(c *rest.Call, p *api.AssociationParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	filter := p.AssocFilter
	if filter.DefaultQOSIDs, err = qosNumbers(r, filter.DefaultQOSIDs, "default_qos"); err != nil {
		return err
	}
	if filter.QOSIDs, err = qosNumbers(r, filter.QOSIDs, "qos"); err != nil {
		return err
	}
	usagePeriod(c, &filter.UsageStart, &filter.UsageEnd)
	body := api.AssociationsAnswer{Envelope: c.Envelope()}
	body.Associations = func(each func(*api.AssociationRow) error) error {
		row := api.AssociationRow{Records: r}
		return recordsOf[model.Association](h, c, filter)(func(a *model.Association) error {
			row.Association = a
			return each(&row)
		})
	}
	return rest.Send(c, http.StatusOK, api.Associations, &body)
}
