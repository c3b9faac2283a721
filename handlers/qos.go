package handlers

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// qosNumbers converts names to ids, because the daemon compares ids. A client
// may also send ids. An unknown id is not an error: it selects nothing.
func qosNumbers(r *api.Records, names []string, parameter string) ([]string, error) {
	var list []string
	for _, name := range names {
		id, err := r.QOSNumber(name)
		if err != nil {
			number, parseErr := strconv.ParseUint(name, 10, 32)
			if parseErr != nil {
				return nil, errs.New(errs.Invalid, "%v", err).WithSource(rest.InQuery + parameter)
			}
			id = uint32(number)
		}
		list = append(list, strconv.FormatUint(uint64(id), 10))
	}
	return list, nil
}

func (h *handler) getQOSList(c *rest.Call, p *api.QOSListParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	filter := p.QOSFilter
	if filter.IDs, err = qosNumbers(r, filter.IDs, "id"); err != nil {
		return err
	}
	return h.sendQOS(c, r, recordsOf[model.QOS](h, c, filter))
}

func (h *handler) getQOS(c *rest.Call, p *api.QOSParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	var filter model.QOSFilter
	if p.WithDeleted {
		filter.Flags = model.QOSWithDeleted
	}
	// The parameter is a name or an id. If it is the name of a quality of
	// service, it is not used as an id.
	byName := slices.Contains(slices.Collect(maps.Values(r.QOS)), p.Name)
	qos, err := findFirst("quality of service", p.Name, recordsOf[model.QOS](h, c, filter),
		func(q *model.QOS) bool {
			return q.Name == p.Name || !byName && strconv.FormatUint(uint64(q.ID), 10) == p.Name
		})
	if err != nil {
		return err
	}
	return h.sendQOS(c, r, func(each func(*model.QOS) error) error { return each(qos) })
}

func (h *handler) sendQOS(c *rest.Call, r *api.Records, list func(each func(*model.QOS) error) error) error {
	body := api.QOSAnswer{Envelope: c.Envelope()}
	body.QOS = func(each func(*api.QOSRow) error) error {
		row := api.QOSRow{Records: r}
		return list(func(q *model.QOS) error {
			row.QOS = q
			return each(&row)
		})
	}
	return rest.Send(c, http.StatusOK, api.QOSList, &body)
}
