// What views use of the data: each hook renders its view again after a change.
import { useEffect, useState } from "preact/hooks";
import { now } from "./clock";
import type { Collection } from "./collection";
import { onEnd, onSession, session } from "./session";

/** Keeps a list up to date while the view is shown, and returns it. */
export function useList<T>(list: Collection<T>): Collection<T> {
	const [, render] = useState(0);
	useEffect(() => {
		const stop = list.use();
		const leave = list.subscribe(() => render((n) => n + 1));
		render((n) => n + 1);
		return () => {
			leave();
			stop();
		};
	}, [list]);
	return list;
}

export function useSession() {
	const [, render] = useState(0);
	useEffect(() => onSession(() => render((n) => n + 1)), []);
	return session;
}

/** Returns the time in seconds since 1970, and renders the view again at each interval. */
export function useNow(seconds: number): number {
	const [time, set] = useState(now);
	useEffect(() => {
		const timer = window.setInterval(() => {
			if (!document.hidden) set(now());
		}, seconds * 1000);
		return () => window.clearInterval(timer);
	}, [seconds]);
	return time / 1000;
}

/** Moves the focus into the view if the control that had it is gone. Otherwise the keyboard would begin again at the top of the page. */
export function keepFocus(): void {
	if (document.activeElement === document.body) document.getElementById("main")?.focus();
}

/** What the user has selected in a list. Another key, such as another filter, has another selection. */
export function useSelection(key: string): [Set<string | number>, (selected: Set<string | number>) => void] {
	const [state, set] = useState({ key, selected: new Set<string | number>() });
	return [state.key === key ? state.selected : none, (selected) => set({ key, selected })];
}
const none = new Set<string | number>();

/** The view that the part of the address after # selects. It never contains a secret. */
export interface Route {
	/** Such as ["jobs"], or ["job", "17"]. */
	parts: string[];
	query: URLSearchParams;
}

function route(): Route {
	const [where, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
	const parts = where.split("/").filter(Boolean).map((part) => {
		try {
			return decodeURIComponent(part);
		} catch {
			return part;
		}
	});
	return { parts: parts.length > 0 ? parts : ["overview"], query: new URLSearchParams(query) };
}

export function useRoute(): Route {
	const [current, set] = useState(route);
	const rendered = location.hash;
	useEffect(() => {
		const changed = () => set(route());
		window.addEventListener("hashchange", changed);
		if (location.hash !== rendered) { // it has changed since the first rendering
			changed();
		}
		return () => window.removeEventListener("hashchange", changed);
	}, []);
	return current;
}

/** Returns the address of a view. */
export function href(parts: string[], query: Record<string, string> = {}): string {
	const text = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== "")).toString();
	return "#/" + parts.map(encodeURIComponent).join("/") + (text && "?" + text);
}

/** Changes the query of the current view without a new entry in the history. */
export function setQuery(query: Record<string, string>): void {
	const { parts } = route();
	history.replaceState(history.state, "", href(parts, query));
	window.dispatchEvent(new HashChangeEvent("hashchange"));
}

/** What views remember, until the session ends. */
const memories = new Map<string, unknown>();
let entries = 0;
onEnd(() => memories.clear());

/**
 * Returns what a part of a view remembers. The view may change it, and gets it again
 * when the user comes back to this entry of the history. A new entry begins with first.
 */
export function useMemory<T>(part: string, first: T): T {
	const [memory] = useState(() => {
		if (!history.state) history.replaceState(`${performance.timeOrigin} ${++entries}`, ""); // not the same after a reload
		const key = `${history.state} ${part}`;
		if (!memories.has(key)) memories.set(key, first);
		return memories.get(key) as T;
	});
	return memory;
}
