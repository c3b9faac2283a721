// The lists that the page keeps up to date, and what it remembers of their
// changes: an hour of numbers for the plots, and the last changes of states.
import { now } from "./clock";
import { Collection } from "./collection";
import fields from "./fields.json";
import { active, type Job, type Node, type Partition, type Reservation, running, toJob, toNode, toPartition, toReservation } from "./records";
import { nodeKinds, type Kind } from "./states";
import { onEnd } from "./session";

export const jobs = new Collection<Job>({ list: "jobs", key: "job_id", fields: fields.jobs, parse: toJob, stream: true, interval: 5 });
export const nodes = new Collection<Node>({ list: "nodes", key: "name", fields: fields.nodes, parse: toNode, stream: true, interval: 10 });
export const partitions = new Collection<Partition>({ list: "partitions", key: "name", fields: fields.partitions, since: { flags: "v0.0.45" }, parse: toPartition, stream: false, interval: 15 });
export const reservations = new Collection<Reservation>({ list: "reservations", key: "name", fields: fields.reservations, parse: toReservation, stream: false, interval: 30 });

/** One change of a state. */
export interface Happening {
	at: number; // ms
	number: number;
	job?: Job;
	node?: Node;
	before: string;
	reason: string;
}

const REMEMBERED = 200;
export let happenings: Happening[] = [];
let number = 0;

function happened(list: Happening[]): void {
	if (list.length > 0) happenings = [...list.reverse(), ...happenings].slice(0, REMEMBERED);
}

jobs.onChanges((changes) => {
	const at = now();
	happened(changes.flatMap(({ before, after }) =>
		after && before?.state !== after.state ? [{ at, number: number++, job: after, before: before?.state ?? "", reason: after.reason }] : []));
});

nodes.onChanges((changes) => {
	const at = now();
	happened(changes.flatMap(({ before, after }) =>
		after && before && noteworthy(before.kind) !== noteworthy(after.kind) ? [{ at, number: number++, node: after, before: before.state, reason: after.reason }] : []));
});

/** Nodes become busy and idle all the time, so only other changes count. */
const noteworthy = (kind: Kind) => (["allocated", "mixed", "idle", "ending"].includes(kind) ? "up" : kind);

/** Numbers at one point in time. */
export interface Sample {
	at: number; // seconds since 1970
	running: number;
	waiting: number;
	cpus: number; // in use, as a fraction of those that jobs can use
}

const HOUR = 3600;
const EVERY = 10; // seconds between samples
export let samples: Sample[] = [];

function sample(): void {
	if (!jobs.complete || !nodes.complete || jobs.mode === "off" || nodes.mode === "off") return;
	const at = Math.floor(now() / 1000);
	let [active, waiting] = [0, 0];
	for (const job of jobs.items.values()) {
		if (running(job)) active++;
		else if (job.state === "PENDING") waiting += job.tasks;
	}
	const usable = usableCPUs();
	if (samples.length === 0) samples = remembered(at, usable.total);
	const last = samples[samples.length - 1];
	const fresh = last !== undefined && at < last.at + EVERY; // then it shows the current numbers
	if (!fresh && seenSince === 0) seenSince = at;
	samples = [...samples.slice(0, fresh ? -1 : undefined).filter((s) => s.at > at - HOUR), { at: fresh ? last.at : at, running: active, waiting, cpus: usable.total > 0 ? usable.used / usable.total : 0 }];
}

/** Since when the page has seen the samples itself. */
export let seenSince = 0;

function usableCPUs() {
	const { used, total, lost } = usage(nodes.items.values()).cpus;
	return { used, total: total - lost };
}

/**
 * Returns the samples of the last hour that follow from the times of the jobs.
 * The controller forgets a job some minutes after its end, so these samples show
 * at least what was there.
 */
function remembered(until: number, usable: number): Sample[] {
	const [steps, width] = [60, HOUR / 60];
	const change = { running: new Float64Array(steps + 1), waiting: new Float64Array(steps + 1), cpus: new Float64Array(steps + 1) };
	const first = until - HOUR;
	const add = (to: Float64Array, from: number, until: number, n: number) => {
		const [a, b] = [from, until].map((t) => Math.max(0, Math.min(steps, Math.ceil((t - first) / width))));
		if (a >= b) return;
		to[a] += n;
		to[b] -= n;
	};
	for (const job of jobs.items.values()) {
		const began = job.state !== "PENDING" && job.started > 0 ? job.started : 0;
		const ended = active(job) ? Infinity : job.ended;
		add(change.waiting, job.submitted, began || ended, job.tasks);
		if (!began) continue;
		add(change.running, began, ended, 1);
		add(change.cpus, began, ended, job.cpus);
	}
	let [runs, waits, cpus] = [0, 0, 0];
	return Array.from({ length: steps }, (_, i) => {
		runs += change.running[i];
		waits += change.waiting[i];
		cpus += change.cpus[i];
		return { at: first + i * width, running: runs, waiting: waits, cpus: usable > 0 ? Math.min(1, cpus / usable) : 0 };
	});
}

window.setInterval(sample, EVERY * 1000);
for (const list of [jobs, nodes]) list.subscribe(sample);

/** How much of a resource is in use. */
export interface Amount {
	total: number;
	used: number;
	/** Not in use, on nodes that jobs can't use. */
	lost: number;
}

export interface Usage {
	kinds: Map<Kind, number>;
	nodes: number;
	cpus: Amount;
	memory: Amount;
	gpus: Amount;
}

const unusable: Kind[] = ["down", "drained", "draining", "maintenance", "off", "unknown"];

/** Adds up the resources of nodes. */
export function usage(list: Iterable<Node>): Usage {
	const amount = (): Amount => ({ total: 0, used: 0, lost: 0 });
	const sum: Usage = { kinds: new Map(), nodes: 0, cpus: amount(), memory: amount(), gpus: amount() };
	const add = (to: Amount, total: number, used: number, lost: boolean) => {
		to.total += total;
		to.used += Math.min(used, total);
		if (lost) to.lost += Math.max(0, total - used);
	};
	for (const node of list) {
		const lost = unusable.includes(node.kind) && !(node.kind === "off" && node.flags.includes("POWERED_DOWN")); // a job switches it on
		sum.nodes++;
		sum.kinds.set(node.kind, (sum.kinds.get(node.kind) ?? 0) + 1);
		add(sum.cpus, node.cpus, node.usedCPUs, lost);
		add(sum.memory, node.memory, node.usedMemory, lost);
		add(sum.gpus, node.gpus, node.usedGPUs, lost);
	}
	sum.kinds = new Map(nodeKinds.flatMap((kind) => (sum.kinds.has(kind) ? [[kind, sum.kinds.get(kind)!] as const] : [])));
	return sum;
}

onEnd(() => {
	for (const list of [jobs, nodes, partitions, reservations]) list.clear();
	happenings = [];
	samples = [];
	seenSince = 0;
});
