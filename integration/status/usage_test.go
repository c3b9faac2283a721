package status

import (
	"fmt"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// playUsage is a script that answers the page's requests for usage as an accounting
// daemon would that has records of many months, and for accounts. The amounts of a
// month, in hours, are given by its distance from now. Nothing was used four months
// ago.
const playUsage = `(() => {
	const real = window.fetch;
	window.asked = [];
	const answer = (body) => Promise.resolve(new Response(JSON.stringify({ errors: [], warnings: [], ...body }), { headers: { "Content-Type": "application/json" } }));
	window.fetch = (address, init) => {
		const url = new URL(address, location.href);
		if (url.pathname.endsWith("/associations/")) return answer({ associations: [{ account: "optics", is_default: false }, { account: "physics", is_default: true }, { account: "optics", is_default: false }] });
		if (!url.pathname.endsWith("/usage/")) return real(address, init);
		window.asked.push(url.search);
		const q = url.searchParams;
		const at = (text) => (/^\d+$/.test(text) ? Number(text) : Date.parse(text + "T00:00:00Z") / 1000);
		const rows = [];
		const now = new Date();
		for (let ago = 36; ago >= 0; ago--) {
			const start = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago, 1) / 1000;
			if (start < at(q.get("start")) || start >= at(q.get("end")) || ago === 4) continue;
			const add = (tres, allocated, more) => (!q.get("tres") || q.get("tres") === tres) && rows.push({ tres, start, allocated: Math.round(3600 * allocated), ...more });
			const wave = 1 + Math.sin(ago * 1.3) / 3;
			const users = ["alice", "bob", "chen", "dara", "eva", "femi", "gita", "hugo"];
			switch (q.get("report")) {
				case "cluster":
					add("cpu", 60000, { idle: 3600 * 20000, planned: 3600 * 20000, down: 3600 * 100000, planned_down: ago === 2 ? 3600 * 5000 : 0 });
					add("mem", 1024 * 500000, { idle: 1024 * 3600 * 300000, planned: 0, down: 0, planned_down: 0 });
					add("gres/gpu", 700, { idle: 3600 * 100, planned: 0, down: 0, planned_down: 0 });
					add("gres/shard", 20, { idle: 0, planned: 0, down: 0, planned_down: 0 });
					break;
				case "users":
					if (q.get("user")) for (const [i, account] of ["physics", "optics"].entries()) add(q.get("tres"), 900 * wave / (i + 1), { account, user: q.get("user") });
					else for (const [i, user] of users.entries()) add("cpu", 4000 * wave / (i + 1), { account: q.get("account"), user });
					break;
				case "accounts":
					add("cpu", users.reduce((sum, _, i) => sum + 4000 * wave / (i + 1), 0) + 500, { account: q.get("account") });
					add("cpu", 500, { account: "below" });
					break;
			}
		}
		return answer({ usage: rows, rolled_up: [{ cluster: "demo", until: Math.floor(Date.now() / 3600000) * 3600 }] });
	};
})()`

// TestUsage checks what the page shows of usage: bars and a table with the same
// numbers, for the user, an account and the cluster. It makes pictures: wide, dark,
// narrow and printed.
func TestUsage(t *testing.T) {
	t.Parallel()
	axe := readRules(t)
	l := harness.NewLab(t)
	p := harness.OpenStatus(t, l.URL)
	p.Call("Page.setBypassCSP", map[string]any{"enabled": true}, nil) // axe-core is not a part of the page
	p.SignIn(l.OwnToken)
	p.Show("usage")
	p.AwaitText("CPU hours that you used: nothing is recorded for this time")
	p.Eval(playUsage)
	p.Show("overview")
	media := func(media, scheme string, width, height int) {
		p.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
		p.Call("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		p.Eval(`new Promise((resolve) => setTimeout(resolve, 300))`)
	}
	cells := func(row int) string {
		return fmt.Sprint(p.Eval(fmt.Sprintf(`[...document.querySelectorAll(".numbers tr")].slice(%d)[0]?.innerText.replace(/[\s↑]+/g, " ").trim()`, row)))
	}
	for _, tt := range []struct {
		view, title string
		bars        int
		heading     string
		first       string // of the first month, without its name
	}{
		{"usage", "CPU hours that you used", 22, "Month physics optics Total", ""},
		{"usage?months=6", "CPU hours that you used", 10, "Month physics optics Total", ""},
		{"usage?scope=account", "CPU hours of the account physics", 7 * 11, "Month alice bob chen dara eva 3 other users subaccounts Total", ""},
		{"usage?scope=account&account=optics&months=24", "CPU hours of the account optics", 7 * 23, "Month alice bob chen dara eva 3 other users subaccounts Total", ""},
		{"usage?scope=cluster", "CPU hours of the cluster", 4*11 + 1, "Month used by jobs kept for waiting jobs idle down down for maintenance Total In use", "60,000 20,000 20,000 100,000 0 200,000 60 %"},
		{"usage?scope=cluster&tres=mem", "GiB hours of memory of the cluster", 2 * 11, "Month used by jobs idle Total In use", "500,000 300,000 800,000 63 %"},
		{"usage?scope=cluster&tres=gres%2Fgpu", "GPU hours of the cluster", 2 * 11, "Month used by jobs idle Total In use", "700 100 800 88 %"},
		{"usage?scope=cluster&tres=gres%2Fshard", "gres/shard hours of the cluster", 11, "Month used by jobs", "20"}, // what was idle is not known
	} {
		media("screen", "light", 1280, 900)
		p.Show(tt.view)
		p.AwaitText(tt.title)

		p.Await("the bars are drawn", fmt.Sprintf(`document.querySelectorAll(".bars rect").length === %d`, tt.bars))
		if heading := cells(0); heading != tt.heading {
			t.Errorf("%s: the columns are %q", tt.view, heading)
		}
		if first := cells(1); !strings.HasSuffix(first, " "+tt.first) && tt.first != "" {
			t.Errorf("%s: the first month is %q", tt.view, first)
		}
		months := map[bool]int{true: 6}[strings.Contains(tt.view, "months=6")] + map[bool]int{true: 24}[strings.Contains(tt.view, "months=24")]
		if months == 0 {
			months = 12
		}
		if rows := p.Eval(`document.querySelectorAll(".numbers tbody tr").length`); rows != float64(months) {
			t.Errorf("%s: %v months", tt.view, rows)
		}
		if strings.HasSuffix(cells(months), "%") != strings.Contains(tt.heading, "In use") || !strings.Contains(cells(months), "so far") {
			t.Errorf("%s: the last month is %q", tt.view, cells(months))
		}
		if zero := cells(months - 4); !strings.Contains(zero, " 0") {
			t.Errorf("%s: four months ago %q", tt.view, zero)
		}
		name := strings.NewReplacer("?", "-", "&", "-", "%2F", "-").Replace(tt.view)
		for _, kind := range []struct {
			name, scheme  string
			width, height int
		}{{"wide", "light", 1280, 900}, {"dark", "dark", 1280, 900}, {"narrow", "light", 390, 800}} {
			media("screen", kind.scheme, kind.width, kind.height)
			p.Screenshot(name + "-" + kind.name)
			checkRules(t, p, axe, tt.view+" "+kind.name)
			if size := p.Eval(`[document.documentElement.scrollWidth - innerWidth, document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth].join(" ")`); size != "0 0" {
				t.Errorf("%s %s: too wide by %v", tt.view, kind.name, size)
			}
		}
	}
	media("print", "dark", 800, 1100)
	p.Eval(`dispatchEvent(new Event("beforeprint"))`)
	p.Screenshot("usage-printed")
	if shown, _ := p.Eval(`[...document.querySelectorAll(".side, .top, .tools, .segments, .csv, select")].filter((e) => e.getClientRects().length > 0).map((e) => e.className).join(", ")`).(string); shown != "" {
		t.Errorf("printed: %s", shown)
	}
	if width := p.Eval(`document.querySelector(".bars").getBoundingClientRect().right - innerWidth`); width.(float64) > 0 {
		t.Errorf("the printed plot is too wide by %v", width)
	}
	media("screen", "light", 1280, 900)
	p.Eval(`dispatchEvent(new Event("afterprint"))`)

	// Whole months are asked for as such, so that the daemon need not add up hours.
	for _, query := range strings.Fields(fmt.Sprint(p.Eval(`window.asked.join(" ")`))) {
		if !strings.Contains(query, "by=month") || strings.Count(query, "-01&") == 0 || strings.Contains(query, "report=users") && !strings.Contains(query, "&user=") && !strings.Contains(query, "&account=") {
			t.Errorf("the page asks %s", query)
		}
	}
	p.Check(l.OwnToken)
}
