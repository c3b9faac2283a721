// Numbers, times and texts as people read them.
import { words } from "../words";
import { now } from "./clock";
import { clusterTime } from "./zone";

const integer = new Intl.NumberFormat(words.locale);
const decimal = new Intl.NumberFormat(words.locale, { maximumFractionDigits: 1 });

export const count = (n: number) => integer.format(n);
export const fraction = (n: number) => decimal.format(n);
export const percent = (part: number, whole: number) => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–");

/** Writes an amount of memory that is given in MiB. */
export function memory(mib: number | undefined): string {
	if (mib === undefined) return "–";
	let unit = 0;
	for (; mib >= 1024 && unit < 3; unit++) mib /= 1024;
	return `${decimal.format(mib)} ${["MiB", "GiB", "TiB", "PiB"][unit]}`;
}

/** Writes a duration in seconds as 1d 02:03:04, 2:03:04 or 3:04. */
export function duration(seconds: number | undefined): string {
	if (seconds === undefined) return "–";
	if (seconds === Infinity) return words.unlimited;
	const s = Math.max(0, Math.floor(seconds));
	const two = (n: number) => String(n).padStart(2, "0");
	const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
	if (d > 0) return `${d}d ${two(h)}:${two(m)}`;
	return h > 0 ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
}

const sameDay = new Intl.DateTimeFormat(words.locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const sameYear = new Intl.DateTimeFormat(words.locale, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const full = new Intl.DateTimeFormat(words.locale, { dateStyle: "medium", timeStyle: "long", hourCycle: "h23" });

/** Writes a point in time, in seconds since 1970, in the reader's zone. */
export function time(seconds: number): string {
	if (!seconds) return "–";
	const [at, today] = [new Date(seconds * 1000), new Date(now())];
	if (at.toDateString() === today.toDateString()) return sameDay.format(at);
	return sameYear.format(at) + (at.getFullYear() === today.getFullYear() ? "" : ` ${at.getFullYear()}`);
}

/** Writes a point in time in full, in the reader's zone and in the cluster's. */
export function exactTime(seconds: number): string {
	return seconds ? `${full.format(seconds * 1000)}\n${words.onCluster} ${clusterTime(seconds)}` : "";
}

/**
 * Characters that change how other text is shown, or that are not shown: those
 * of control, of direction, and those without a width. A job's name could use
 * them to look like another text.
 */
const HIDDEN = /[\p{Control}\p{Surrogate}\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff9-\ufffb]/gu;

/** Returns a text with a visible sign in place of each hidden character, and at most a number of characters. */
export function visible(text: string, limit = 300): string {
	const cut = text.length > limit ? text.slice(0, limit).replace(/[\ud800-\udbff]$/, "") + "…" : text;
	return cut.replace(HIDDEN, (c) => `⟨${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** Like visible, for a text of several lines. */
export function visibleLines(text: string, limit = 200_000): string {
	const cut = text.length > limit ? text.slice(0, limit) + "…" : text;
	return cut.split("\n").map((line) => visible(line.replace(/\t/g, "    ").replace(/\r$/, ""), Infinity)).join("\n");
}
