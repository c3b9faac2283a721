// Calls every endpoint of a running gateway with the client that openapi-zod-client generates,
// which throws when an answer is not what the document says. URL and TOKEN are the gateway's.
import { createApiClient } from "./client";

declare const process: { env: Record<string, string | undefined>; exit(code: number): void };

const url = process.env["URL"] ?? "";
const token = process.env["TOKEN"] ?? "";

type Endpoint = { method: string; path: string; alias?: string; parameters?: { name: string; type: string }[]; response: Schema; errors: { status: number | "default"; schema: Schema }[] };
type Schema = { safeParse(v: unknown): { error?: unknown } };
type Answer = Record<string, unknown> & { jobs?: { job_id?: number }[] };
type Call = { params?: Record<string, string>; body?: unknown; token?: string };
type Failed = Error & { cause?: unknown; response?: { status: number; data: unknown } };

// The client's own types know each endpoint by its path, and here all of them are called alike.
const client = createApiClient(url, { validate: true }) as unknown as { api: Endpoint[]; request(options: object): Promise<Answer> };
const endpoints = client.api;

const absent = "4000000000"; // names nothing: no job and no other record
const unsupported = /\/(reconfigure|requeue|conf|instances?|resources\/:job_id|stdout|stderr|script|tokens)\/?$/; // by the daemons of the demo, or for a job that has ended (script), or by a gateway that reads no output or accepts no gateway tokens

// find returns an endpoint. The document has slurmrestd's paths, of which some end with a slash.
function find(method: string, path: string): Endpoint {
	const e = endpoints.find((e) => e.method === method && e.path.replace(/\/$/, "") === path);
	if (!e) throw new Error(`the document has no ${method.toUpperCase()} ${path}`);
	return e;
}

let problems = 0;
const statuses: Record<string, number> = {};

function problem(what: string, why: unknown) {
	problems++;
	console.error(`${what}: ${why instanceof Error ? `${why.message} ${String((why as Failed).cause ?? "")}` : String(why)}`);
}

// call returns the validated answer, or undefined when the gateway refused the request: then the
// body is validated.
async function call(e: Endpoint, { params = {}, body, token: sent = token }: Call): Promise<Answer | undefined> {
	const what = `${e.method.toUpperCase()} ${e.path}`;
	try {
		const answer = await client.request({ method: e.method, url: e.path, params, data: body, headers: { "X-SCHED-USER-TOKEN": sent } });
		statuses[200] = (statuses[200] ?? 0) + 1;
		return answer;
	} catch (error) {
		const refused = (error as Failed).response;
		if (!refused) {
			problem(what, error);
			return undefined;
		}
		statuses[refused.status] = (statuses[refused.status] ?? 0) + 1;
		// An endpoint with a list adds it, empty, to the envelope of an error.
		const { error: invalid } = e.errors.find((f) => f.status === "default")!.schema.safeParse(refused.data);
		if (e.response.safeParse(refused.data).error === undefined) return undefined;
		if (invalid) problem(`${what} (${refused.status})`, invalid);
		return undefined;
	}
}

async function expect(e: Endpoint, c: Call): Promise<Answer> {
	const answer = await call(e, c);
	if (!answer) problem(`${e.method} ${e.path}`, "not answered with 200");
	return answer ?? {};
}

// names returns a value for each path parameter, taken from what the cluster has.
async function names(version: string, job: string): Promise<Record<string, string>> {
	const first = async (path: string, list: string) => {
		const e = find("get", `/${path.split("/")[0]}/${version}/${path.split("/")[1]}`);
		const items = (await expect(e, {}))[list] as { name?: string }[];
		return items[0]?.name ?? absent;
	};
	return {
		job_id: job,
		node_name: await first("sched/nodes", "nodes"),
		partition_name: await first("sched/partitions", "partitions"),
		cluster_name: await first("scheddb/clusters", "clusters"),
		account_name: await first("scheddb/accounts", "accounts"),
		name: await first("scheddb/users", "users"),
		qos: await first("scheddb/qos", "qos"),
		reservation_name: absent,
		id: absent, // of a workload key
	};
}

// submit returns the number of a job that accounting knows, too.
async function submit(version: string): Promise<string> {
	const job = { script: "#!/bin/sh\ntrue\n", environment: ["PATH=/usr/bin:/bin"], current_working_directory: "/", standard_output: "/dev/null", tasks: 1, time_limit: { set: true, number: 5 } };
	const { job_id } = await expect(find("post", `/sched/${version}/job/submit`), { body: { job } });
	for (let tries = 0; tries < 50; tries++) {
		const { jobs } = await expect(find("get", `/scheddb/${version}/jobs`), {});
		if (jobs?.some((j) => j.job_id === job_id)) return String(job_id);
		await new Promise((resolve) => setTimeout(resolve, 200));
	}
	throw new Error(`job ${job_id} is not in accounting`);
}

async function main() {
	for (const version of new Set(endpoints.map((e) => e.path.split("/")[2]!))) {
		const known = await names(version, await submit(version));
		for (const e of endpoints.filter((e) => e.path.split("/")[2] === version && e.method === "get")) {
			const asked = (value: (name: string) => string) =>
				Object.fromEntries((e.parameters ?? []).filter((p) => p.type === "Path").map((p) => [p.name, value(p.name)]));
			const params = asked((name) => known[name] ?? `no value for ${name}`);
			await (Object.values(params).includes(absent) || unsupported.test(e.path) ? call : expect)(e, { params });
			if (Object.keys(params).length > 0) await call(e, { params: asked(() => absent) });
		}
		const refused = find("post", `/sched/${version}/job/submit`);
		if (await call(refused, { body: { job: { environment: ["A=b"] } } })) problem(refused.path, "a job without a script was submitted");
		const cancelled = find("delete", `/sched/${version}/job/:job_id`);
		await call(cancelled, { params: { job_id: known["job_id"]! } });
	}
	await call(endpoints[0]!, { token: "wrong" }); // once: further ones are a penalty
	console.log(`${endpoints.length} endpoints, answers by status: ${JSON.stringify(statuses)}`);
	process.exit(problems > 0 ? 1 : 0);
}

void main();
