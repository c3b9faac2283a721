// The lists that the page keeps up to date, and what it remembers of their
// changes: an hour of numbers for the plots, and the last changes of states.
import { Collection } from "./collection";
import fields from "./fields.json";
import { type Job, type Node, type Partition, type Reservation, running, toJob, toNode, toPartition, toReservation } from "./records";
import { nodeKinds, type Kind } from "./states";
import { onEnd } from "./session";

export const jobs = new Collection<Job>({ list: "jobs", key: "job_id", fields: fields.jobs, parse: toJob, stream: true, interval: 5 });
export const nodes = new Collection<Node>({ list: "nodes", key: "name", fields: fields.nodes, parse: toNode, stream: true, interval: 10 });
export const partitions = new Collection<Partition>({ list: "partitions", key: "name", fields: fields.partitions, parse: toPartition, stream: false, interval: 15 });
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
	const at = Date.now();
	happened(changes.slice(-REMEMBERED).flatMap(({ before, after }) =>
		after && before?.state !== after.state ? [{ at, number: number++, job: after, before: before?.state ?? "", reason: after.reason }] : []));
});

nodes.onChanges((changes) => {
	const at = Date.now();
	happened(changes.slice(-REMEMBERED).flatMap(({ before, after }) =>
		after && before && noteworthy(before.kind) !== noteworthy(after.kind) ? [{ at, number: number++, node: after, before: before.state, reason: after.reason }] : []));
});

/** Nodes become busy and idle all the time, so only other changes count. */
const noteworthy = (kind: Kind) => (["allocated", "mixed", "idle", "ending"].includes(kind) ? "up" : kind);

/** Numbers at one point in time. */
export interface Sample {
	at: number; // seconds since 1970
	running: number;
	waiting: number;
	cpus: number; // allocated, as a fraction of those that work
}

const HOUR = 3600;
const EVERY = 10; // seconds between samples
export let samples: Sample[] = [];

function sample(): void {
	if (!jobs.complete || !nodes.complete || jobs.mode === "off" || nodes.mode === "off") return;
	const at = Math.floor(Date.now() / 1000);
	let [active, waiting] = [0, 0];
	for (const job of jobs.items.values()) {
		if (running(job)) active++;
		else if (job.state === "PENDING") waiting++;
	}
	const { used, total } = usage(nodes.items.values()).cpus;
	const last = samples[samples.length - 1];
	const fresh = last !== undefined && at < last.at + EVERY; // then it shows the current numbers
	samples = [...samples.slice(0, fresh ? -1 : undefined).filter((s) => s.at > at - HOUR), { at: fresh ? last.at : at, running: active, waiting, cpus: total > 0 ? used / total : 0 }];
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

const unusable: Kind[] = ["down", "drained", "draining", "off", "unknown"];

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
		const lost = unusable.includes(node.kind);
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
});
