// States of jobs and nodes: what the page shows of them. Each kind has a colour,
// a shape and a word, so that states can be distinguished without the colour.

/** How a state is shown. */
export type Kind =
	| "running" | "waiting" | "paused" | "ending" | "done" | "failed" | "cancelled" | "timeout" // jobs
	| "allocated" | "mixed" | "idle" | "draining" | "drained" | "down" | "planned" | "reserved" | "maintenance" | "off" | "unknown"; // nodes

export function jobKind(state: string, flags: string[]): Kind {
	switch (state) {
		case "PENDING":
			return "waiting";
		case "RUNNING":
			return flags.includes("COMPLETING") ? "ending" : "running";
		case "SUSPENDED":
			return "paused";
		case "COMPLETED":
			return flags.includes("COMPLETING") ? "ending" : "done";
		case "CANCELLED":
		case "PREEMPTED":
			return "cancelled";
		case "TIMEOUT":
		case "DEADLINE":
			return "timeout";
	}
	return state ? "failed" : "unknown";
}

const OFF = ["POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"];

export function nodeKind(state: string, flags: string[]): Kind {
	const has = (...names: string[]) => names.some((name) => flags.includes(name));
	const busy = state === "ALLOCATED" || state === "MIXED" || has("COMPLETING");
	if (state === "DOWN" || state === "ERROR" || has("NOT_RESPONDING", "FAIL", "INVALID_REG")) return "down";
	if (has("DRAIN")) return busy ? "draining" : "drained";
	if (state === "FUTURE" || has(...OFF)) return "off";
	if (state === "ALLOCATED") return "allocated";
	if (state === "MIXED") return "mixed";
	if (has("COMPLETING")) return "ending";
	if (has("MAINTENANCE", "REBOOT_ISSUED")) return "maintenance";
	if (has("RESERVED", "BLOCKED")) return "reserved";
	if (has("PLANNED")) return "planned";
	return state === "IDLE" ? "idle" : "unknown";
}

/** The kinds of nodes, in the order in which the page shows them. */
export const nodeKinds: Kind[] = ["allocated", "mixed", "ending", "idle", "planned", "reserved", "maintenance", "draining", "drained", "down", "off", "unknown"];
