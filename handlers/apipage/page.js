// The page at /docs: shows the gateway's OpenAPI document, one version and one
// spelling at a time, and sends requests with the token of the form. The token
// is in that field only: not in a cookie, a store of the browser, an address, or
// the shown curl command.
"use strict";

(() => {
	const element = (id) => document.getElementById(id);
	const root = location.pathname.replace(/\/docs\/?$/, ""); // where a proxy may have put the gateway
	const operations = /^\/([a-z]+)\/(v0\.0\.[0-9]+)\//;
	const spelling = (first) => first.replace(/db$/, "");

	// complain shows an error in place of the document.
	function complain(text) {
		element("problem").textContent = text;
		element("problem").hidden = false;
	}

	// choices returns the versions and spellings of a document, the newest and
	// the most common first. Versions that are previews come last.
	function choices(spec) {
		const versions = new Set(), names = new Set(), previews = new Set();
		for (const [path, methods] of Object.entries(spec.paths)) {
			const [, first, version] = operations.exec(path) || [];
			if (version) versions.add(version);
			if (Object.values(methods).some((operation) => operation["x-preview"])) previews.add(version);
			if (first && first !== "util") names.add(spelling(first));
		}
		const rank = (version) => Number(version.split(".")[2]) - (previews.has(version) ? 1000 : 0);
		return { versions: [...versions].sort((a, b) => rank(b) - rank(a)), names: [...names].sort().reverse(), previews };
	}

	// chosen returns the part of a document that a version and a spelling have.
	// The token is sent by this page, so that the page of Swagger UI needs no
	// fields for it.
	function chosen(spec, version, names) {
		const part = { ...spec, servers: [{ url: root || "/" }], paths: {}, components: { ...spec.components } };
		delete part.components.securitySchemes;
		const tags = new Set();
		for (const [path, methods] of Object.entries(spec.paths)) {
			const [, first, of] = operations.exec(path) || [];
			if (of && of !== version || first && first !== "util" && spelling(first) !== names) continue;
			part.paths[path] = {};
			for (const [method, operation] of Object.entries(methods)) {
				part.paths[path][method] = { ...operation };
				delete part.paths[path][method].security;
				for (const tag of operation.tags || []) tags.add(tag);
			}
		}
		part.tags = (spec.tags || []).filter((tag) => tags.has(tag.name));
		return part;
	}

	// sign adds the token to a request to this gateway.
	function sign(request) {
		if (new URL(request.url, location.href).origin !== location.origin) {
			throw new Error("requests to other servers are not sent");
		}
		const prefix = element("names").value === "slurm" ? "X-SLURM-USER-" : "X-SCHED-USER-";
		const token = element("token").value.trim().replace(/^(SCHED|SLURM)_JWT=/, "");
		const user = element("user").value.trim();
		request.credentials = "omit";
		if (token) request.headers[prefix + "TOKEN"] = token;
		if (user) request.headers[prefix + "NAME"] = user;
		return request;
	}

	// search makes the filter of Swagger UI find operations by words that their
	// methods, paths, names or summaries contain. Without it, the filter finds
	// only the groups of operations.
	const search = () => ({
		fn: {
			opsFilter: (groups, phrase) => {
				const words = phrase.toLowerCase().split(/\s+/);
				const matches = (o) => {
					const text = [o.get("method"), o.get("path"), o.getIn(["operation", "operationId"]), o.getIn(["operation", "summary"])].join(" ").toLowerCase();
					return words.every((word) => text.includes(word));
				};
				return groups.map((group) => group.update("operations", (list) => list.filter(matches))).filter((group) => group.get("operations").size > 0);
			},
		},
	});

	// show shows the chosen part in an element of its own: the page of Swagger UI
	// before it may still be writing to its element.
	function show(spec) {
		const node = document.createElement("div");
		element("ui").replaceChildren(node);
		SwaggerUIBundle({
			spec: chosen(spec, element("version").value, element("names").value),
			domNode: node,
			layout: "BaseLayout",
			presets: [SwaggerUIBundle.presets.apis],
			plugins: [search],
			onComplete: () => {
				const field = node.querySelector(".operation-filter-input");
				if (field) field.placeholder = "Search, for example: submit, or get node";
			},
			docExpansion: "list",
			defaultModelsExpandDepth: -1,
			filter: true,
			tryItOutEnabled: true,
			displayRequestDuration: true,
			persistAuthorization: false,
			validatorUrl: null,
			showMutatedRequest: false, // the curl command has no token
			requestInterceptor: sign,
		});
	}

	// options fills a selection.
	function options(select, values, previews = new Set()) {
		select.replaceChildren(...values.map((value) => new Option(previews.has(value) ? value + " (preview)" : value, value)));
	}

	async function main() {
		element("choice").addEventListener("submit", (event) => event.preventDefault());
		const answer = await fetch(root + "/openapi.json", { credentials: "omit" });
		if (!answer.ok) throw new Error(`GET openapi.json: ${answer.status} ${answer.statusText}`);
		const spec = await answer.json();
		const { versions, names, previews } = choices(spec);
		options(element("version"), versions, previews);
		options(element("names"), names);
		for (const id of ["version", "names"]) element(id).addEventListener("change", () => show(spec));
		show(spec);
	}

	main().catch((error) => complain(String(error)));
})();
