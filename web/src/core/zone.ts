// The cluster's time zone, as the gateway has it.

interface Offset {
	from: number;
	seconds: number;
	name: string;
}

let offsets: Offset[] = [];

/** Sets the cluster's zone: its distances from UTC, each with the time from which it holds. */
export function setZone(list: Offset[]): void {
	offsets = list;
}

/** Writes a point in time as the cluster's commands do, or in UTC if the distance at this time is not known. */
export function clusterTime(seconds: number): string {
	const offset = offsets.findLast((o) => o.from <= seconds) ?? { seconds: 0, name: "UTC" };
	return `${new Date((seconds + offset.seconds) * 1000).toISOString().slice(0, 19).replace("T", " ")} ${offset.name}`;
}
