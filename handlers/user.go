package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

func (h *handler) getUsers(c *rest.Call, p *api.UsersParams) error {
	list := recordsOf[model.User](h, c, p.UserFilter)
	if p.WithoutDefaults {
		all := list
		list = func(each func(*model.User) error) error {
			return all(func(u *model.User) error {
				u.DefaultAccount, u.DefaultWCKey = "", ""
				return each(u)
			})
		}
	}
	return h.sendUsers(c, list)
}

func (h *handler) getUser(c *rest.Call, p *api.UsersParams) error {
	p.Assoc.Users = []string{p.Name}
	user, err := findFirst("user", p.Name, recordsOf[model.User](h, c, p.UserFilter),
		func(u *model.User) bool { return u.Name == p.Name })
	if err != nil {
		return err
	}
	return h.sendUsers(c, func(each func(*model.User) error) error { return each(user) })
}

func (h *handler) sendUsers(c *rest.Call, list func(each func(*model.User) error) error) error {
	return rest.Send(c, http.StatusOK, api.UserList, &api.UsersAnswer{Users: list, Envelope: c.Envelope()})
}
