package handlers

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/web"
)

// statusPages returns the page at /status and the page's other files, keyed by
// path. They are static and contain nothing about the cluster, so they are
// served without a token. The page's requests need one.
func (h *handler) statusPages() map[string]rest.Page {
	pages := map[string]rest.Page{}
	if !h.Status {
		return pages
	}
	for _, path := range web.Paths() {
		pages[path] = rest.Page{ID: "status", Do: func(c *rest.Call) error { return c.SendFile(path, web.Files()[path], web.Policy) }}
	}
	pages["status/zone.json"] = rest.Page{ID: "status", Do: sendZone}
	pages["status/clusters.json"] = rest.Page{ID: "status", Do: h.sendOtherClusters}
	return pages
}

// sendOtherClusters answers with the other clusters of the site: for each its name, and
// the address of its gateway.
func (h *handler) sendOtherClusters(c *rest.Call) error {
	list := [][2]string{}
	for _, text := range h.Clusters {
		name, address, _ := strings.Cut(text, "=")
		list = append(list, [2]string{name, strings.TrimRight(address, "/")})
	}
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	c.SetContentType(rest.MediaJSON)
	return c.SendString(string(body))
}

// rootPages returns the redirect of the path /.
func (h *handler) rootPages() map[string]rest.Page {
	switch {
	case h.Status:
		return map[string]rest.Page{"": {ID: "status", OnlyHTML: true, Do: redirectTo("status")}}
	case h.Docs:
		return map[string]rest.Page{"": {ID: "docs", OnlyHTML: true, Do: redirectTo("docs")}}
	}
	return nil
}

// redirectTo answers a browser's request for the path / with a redirect to a
// page. The redirect is relative, because a proxy may serve the gateway below
// another path.
func redirectTo(page string) func(*rest.Call) error {
	return func(c *rest.Call) error {
		c.Header().Set("Vary", "Accept")
		c.Header().Set("Location", page)
		return c.SendText(http.StatusFound, "see "+page+"\n")
	}
}

// An offset is a period of time in which the cluster's local time has the same
// distance from UTC.
type offset struct {
	From    int64  `json:"from"`    // seconds since 1970
	Seconds int    `json:"seconds"` // east of UTC
	Name    string `json:"name"`    // such as CET
}

// sendZone answers with the gateway's time zone, so that the page can show times
// as the cluster's commands do: the offsets of the last year and the next.
func sendZone(c *rest.Call) error {
	now := time.Now()
	var offsets []offset
	for t := now.AddDate(-1, 0, 0); !t.IsZero() && t.Before(now.AddDate(1, 0, 0)); {
		name, seconds := t.Zone()
		offsets = append(offsets, offset{t.Unix(), seconds, name})
		_, t = t.ZoneBounds()
	}
	body, err := json.Marshal(offsets)
	if err != nil {
		return err
	}
	c.SetContentType(rest.MediaJSON)
	return c.SendString(string(body))
}
