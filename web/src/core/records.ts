// The records that the page keeps of jobs and nodes: the fields of an answer,
// with plain values in place of objects for numbers.
import { type Kind, jobKind, nodeKind } from "./states";
import { gpusOfGRES, gpusOfTRES } from "./resources";

/** A number in an answer. */
export interface Num {
	set: boolean;
	infinite: boolean;
	number: number;
}

/** Returns the value of a number, Infinity, or undefined. */
export function value(n: Num | undefined): number | undefined {
	return n?.infinite ? Infinity : n?.set ? n.number : undefined;
}

export interface Job {
	id: number;
	/** Name of the job as users write it: 12, 12_3, 12_[4-7], or 12+1. */
	label: string;
	name: string;
	user: string;
	account: string;
	partition: string;
	qos: string;
	/** Base state, such as RUNNING. */
	state: string;
	flags: string[];
	kind: Kind;
	reason: string;
	/** The controller's description of the reason; often empty. */
	why: string;
	held: boolean;
	/** Number of tasks: those that wait, if the record stands for the tasks of an array. */
	tasks: number;
	array: number;
	het: number;
	submitted: number;
	started: number;
	ended: number;
	/** When the job was suspended or, if it runs again, resumed; 0 if neither. */
	suspended: number;
	/** When the job would have started, had it never been suspended. */
	since: number;
	/** Time limit in seconds; undefined if unknown. */
	limit: number | undefined;
	cpus: number;
	nodeCount: number;
	nodes: string;
	gpus: number;
	more: Record<string, any>;
}

export function label(r: any): string {
	const array = r.array_job_id?.number ?? 0;
	const het = r.het_job_id?.number ?? 0;
	if (array && r.array_task_id?.set) return `${array}_${r.array_task_id.number}`;
	if (array && r.array_task_string) return `${array}_[${r.array_task_string}]`;
	if (het) return `${het}+${r.het_job_offset?.number ?? 0}`;
	return String(r.job_id);
}

/** Returns the number of tasks in a list such as "0-9,12-20:2%4". A long list is cut, and ends with "...". */
export function tasksOf(text: string): number {
	let n = 0;
	for (const part of text.replace(/%.*/, "").split(",")) {
		const m = /^(\d+)(?:-(\d+)(?::(\d+))?)?$/.exec(part);
		if (m) n += m[2] ? Math.floor((Number(m[2]) - Number(m[1])) / Number(m[3] ?? 1)) + 1 : 1;
	}
	return Math.max(1, n);
}

export function toJob(r: any): Job {
	const [state = "", ...flags] = r.job_state as string[];
	const limit = value(r.time_limit);
	const suspended: number = r.suspend_time.number;
	return {
		id: r.job_id, label: label(r), name: r.name, user: r.user_name, account: r.account, partition: r.partition, qos: r.qos,
		state, flags, kind: jobKind(state, flags), reason: r.state_reason === "None" ? "" : r.state_reason, why: r.state_description ?? "", tasks: r.array_task_id?.set ? 1 : tasksOf(r.array_task_string ?? ""), held: r.hold && state === "PENDING",
		array: r.array_job_id.number, het: r.het_job_id.number,
		submitted: r.submit_time.number, started: r.start_time.number, ended: r.end_time.number, suspended, since: suspended ? suspended - r.pre_sus_time.number : r.start_time.number, limit: limit === undefined ? undefined : limit * 60,
		cpus: r.cpus.number, nodeCount: r.node_count.number, nodes: r.nodes, gpus: gpusOfTRES(r.tres_alloc_str),
		more: { priority: r.priority?.number, requested: r.tres_req_str, dependency: r.dependency, comment: r.comment, directory: r.current_working_directory },
	};
}

/** Returns the number of jobs that a list stands for, each task of an array counted. */
export const tasksIn = (list: Job[]) => list.reduce((sum, job) => sum + job.tasks, 0);

export const active = (job: Job) => job.state === "PENDING" || job.state === "RUNNING" || job.state === "SUSPENDED";
export const running = (job: Job) => job.state === "RUNNING" || job.state === "SUSPENDED";

/** Returns for how many seconds a job that has started has run, without the times for which it was suspended. */
export const ran = (job: Job, now: number) => Math.max(0, (job.state === "SUSPENDED" ? job.suspended : job.state === "RUNNING" ? now : job.ended) - job.since);

export interface Node {
	name: string;
	/** The name with padded numbers, for sorting. */
	order: string;
	state: string;
	flags: string[];
	kind: Kind;
	reason: string;
	partitions: string[];
	cpus: number;
	usedCPUs: number;
	load: number;
	/** In MiB. */
	memory: number;
	usedMemory: number;
	freeMemory: number | undefined;
	gpus: number;
	usedGPUs: number;
	features: string[];
	gres: string;
}

/** Returns a text whose order is that of names with numbers: n9 before n10. */
export const natural = (name: string) => name.replace(/\d+/g, (digits) => digits.padStart(9, "0"));

export function toNode(r: any): Node {
	const [state = "", ...flags] = r.state as string[];
	return {
		name: r.name, order: natural(r.name), state, flags, kind: nodeKind(state, flags), reason: r.reason, partitions: r.partitions,
		cpus: r.effective_cpus || r.cpus, usedCPUs: r.alloc_cpus, load: r.cpu_load / 100, memory: r.real_memory, usedMemory: r.alloc_memory, freeMemory: value(r.free_mem),
		gpus: gpusOfGRES(r.gres), usedGPUs: gpusOfGRES(r.gres_used), features: r.features, gres: r.gres,
	};
}

export interface Partition {
	name: string;
	state: string;
	nodes: number;
	hosts: string;
	cpus: number;
	tres: string;
	defaultTime: number | undefined;
	maxTime: number | undefined;
	maxNodes: number | undefined;
	tier: number;
	accounts: string;
	denied: string;
	groups: string;
	qos: string;
	/** Whether jobs that name no partition run here. */
	standard: boolean;
}

const minutes = (n: Num | undefined) => {
	const v = value(n);
	return v === undefined ? undefined : v * 60;
};

export function toPartition(r: any): Partition {
	return {
		name: r.name, state: r.partition.state[0] ?? "", nodes: r.nodes.total, hosts: r.nodes.configured, cpus: r.cpus.total, tres: r.tres.configured,
		defaultTime: minutes(r.defaults.time), maxTime: minutes(r.maximums.time), maxNodes: value(r.maximums.nodes), tier: r.priority.tier,
		accounts: r.accounts.allowed, denied: r.accounts.deny, groups: r.groups.allowed, qos: r.qos.assigned || r.qos.allowed, standard: (r.flags ?? []).includes("DEFAULT"),
	};
}

export interface Reservation {
	name: string;
	start: number;
	end: number;
	nodes: number;
	cores: number;
	hosts: string;
	partition: string;
	users: string;
	accounts: string;
	groups: string;
	flags: string[];
}

export function toReservation(r: any): Reservation {
	return {
		name: r.name, start: r.start_time.number, end: r.end_time.number, nodes: r.node_count, cores: r.core_count, hosts: r.node_list,
		partition: r.partition, users: r.users, accounts: r.accounts, groups: r.groups, flags: r.flags,
	};
}
