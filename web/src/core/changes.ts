// Changes that the user may ask for. Each sends the smallest request for one
// job or node. The page offers what the scopes of the token permit. Beyond that it
// does not guess what the user may do: it offers a change until an answer has
// refused it.
import { call, Failure, onEnd, permits, type Scope, session } from "./session";
import type { Job, Node } from "./records";
import { active } from "./records";

export type JobAction = "cancel" | "hold" | "release" | "requeue";
export type NodeAction = "drain" | "resume";

const jobScope: Record<JobAction, Scope> = { cancel: "compute.cancel", hold: "compute.modify", release: "compute.modify", requeue: "compute.modify" };

/** Changes that an answer has refused, until the session ends. */
const refused = new Set<string>();
onEnd(() => refused.clear());

const mine = (job: Job) => job.user === session.user;

/** Names the changes that are refused together with this one. A user may change their own jobs, but perhaps not this one. */
const jobClass = (action: JobAction, job: Job) => (mine(job) ? `${action} ${job.label}` : "jobs of others");

/** Returns whether a change makes sense for a job, is permitted, and was not refused. */
export function offersJob(action: JobAction, job: Job): boolean {
	const sensible = {
		cancel: active(job) && !job.flags.includes("COMPLETING"),
		hold: job.state === "PENDING" && !job.held,
		release: job.state === "PENDING" && job.held,
		requeue: session.version >= "v0.0.45" && job.state !== "PENDING",
	}[action];
	return sensible && permits(jobScope[action]) && !refused.has(jobClass(action, job));
}

/** Returns whether a change makes sense for a node, is permitted, and was not refused. */
export function offersNode(action: NodeAction, node: Node): boolean {
	const out = node.flags.includes("DRAIN") || ["DOWN", "ERROR"].includes(node.state) || node.flags.includes("FAIL");
	return (action === "drain" ? !node.flags.includes("DRAIN") : out) && permits("cluster.admin") && !refused.has("nodes");
}

/** Whether an answer has refused changes of nodes, or of other users' jobs. */
export const wasRefused = (what: "nodes" | "jobs of others") => refused.has(what);

/** Returns the name of a job in a request: the limit of tasks that run at once is not a part of it, as in 12_[4-7%2]. */
export const target = (label: string) => label.replace(/%\d+(?=\]$)/, "");

/** Makes a change of a job, or throws a Failure. */
export async function changeJob(action: JobAction, job: Job): Promise<void> {
	const id = encodeURIComponent(target(job.label));
	await remember(jobClass(action, job), () => {
		switch (action) {
			case "cancel":
				return call("controller", `job/${id}`, { method: "DELETE" });
			case "hold":
			case "release":
				return call("controller", `job/${id}`, { method: "POST", body: { hold: action === "hold" } });
			case "requeue":
				return call("controller", "jobs/requeue", { method: "POST", body: { jobs: [target(job.label)] } });
		}
	});
}

/** Makes a change of a node, or throws a Failure. */
export async function changeNode(action: NodeAction, node: Node, reason: string): Promise<void> {
	const body = action === "drain" ? { state: ["DRAIN"], reason } : { state: ["RESUME"] };
	await remember("nodes", () => call("controller", `node/${encodeURIComponent(node.name)}`, { method: "POST", body }));
}

async function remember(what: string, change: () => Promise<unknown>): Promise<void> {
	try {
		await change();
	} catch (error) {
		if (error instanceof Failure && error.status === 403) refused.add(what);
		throw error;
	}
}

const AT_ONCE = 4;

/** Makes several changes, a few at a time, and calls done after each, with its error if it failed. Those that have not begun when the signal is aborted are not made. */
export async function each<T>(list: T[], change: (one: T) => Promise<void>, done: (one: T, error?: Failure) => void, signal: AbortSignal): Promise<void> {
	const rest = [...list];
	const work = async () => {
		for (let one = rest.shift(); one !== undefined && !signal.aborted; one = rest.shift()) {
			try {
				await change(one);
				done(one);
			} catch (error) {
				done(one, error instanceof Failure ? error : new Failure(0, String(error)));
			}
		}
	};
	await Promise.all(Array.from({ length: AT_ONCE }, work));
}
