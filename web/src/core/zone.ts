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

/** Returns year, month (from 0), day, hour, minute and second of a point in time on the cluster's clocks, or on the browser's if the zone is not known. */
export function clusterDate(seconds: number): number[] {
	const offset = offsets.findLast((o) => o.from <= seconds);
	const d = new Date(seconds * 1000 - (offset ? -1000 * offset.seconds : 60_000 * new Date(seconds * 1000).getTimezoneOffset()));
	return [d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()];
}

/** Returns the point in time at which these clocks show a date. Like Date, it takes numbers beyond their ranges. */
export function clusterMoment(year: number, month: number, day: number, hour: number, minute: number, second: number): number {
	const shown = Date.UTC(year, month, day, hour, minute, second) / 1000;
	const offset = offsets.findLast((o) => o.from <= shown - o.seconds);
	return offset ? shown - offset.seconds : Math.floor(new Date(year, month, day, hour, minute, second).getTime() / 1000);
}
