// What Slurm's reasons mean: the same table as in the REST API's explanations.
import table from "./reasons.json";

/** Returns why a job waits or has failed, and what would change it; both "" for an unknown reason. */
export function explain(reason: string): [why: string, change: string] {
	const [why, change] = Object.hasOwn(table, reason) ? (table as Record<string, string[]>)[reason]! : ["", ""];
	return [why!, change!];
}
