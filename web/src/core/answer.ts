// Keeps the answer to one request up to date: asks again from time to time, and
// at once when the page has seen a change elsewhere. An answer that has not
// changed is not sent again.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Daemon, Failure, failure, path, send } from "./session";

export interface Answer<T> {
	data?: T;
	failure?: Failure;
	/** Asks again at once. */
	refresh: () => void;
}

interface Options {
	daemon: Daemon;
	/** The path and query; nothing is asked while it is "". */
	operation: string;
	/** Seconds between two requests. */
	interval: number;
	/** Seconds for which the answer may be old. */
	maxAge?: number;
	/** Another value means that the answer may have changed. */
	sign?: unknown;
}

/** What the page knows of an answer. */
interface Known<T> {
	operation: string;
	tag: string;
	data?: T;
	failure?: Failure;
}

export function useAnswer<T>({ daemon, operation, interval, maxAge, sign }: Options): Answer<T> {
	const known = useRef<Known<T>>({ operation, tag: "" });
	const [, render] = useState(0);
	const [turn, setTurn] = useState(0);
	const latest = useRef(sign);
	latest.current = sign;
	const again = useRef(() => {});
	if (known.current.operation !== operation) known.current = { operation, tag: "" };
	useEffect(() => {
		if (operation === "") return;
		const stop = new AbortController();
		let timer = 0;
		let asking = false;
		const set = (changes: Partial<Known<T>>) => {
			if (known.current.operation !== operation) return;
			known.current = { ...known.current, ...changes };
			render((n) => n + 1);
		};
		const ask = async (): Promise<void> => {
			if (asking || stop.signal.aborted || document.hidden) return; // a page that is shown again asks again
			asking = true;
			let pause = interval;
			const asked = latest.current;
			try {
				const headers: Record<string, string> = { Accept: "application/json" };
				if (known.current.tag) headers["If-None-Match"] = known.current.tag;
				if (maxAge) headers["Cache-Control"] = `max-age=${maxAge}`;
				const response = await send(path(daemon, operation), { headers, signal: stop.signal });
				if (response.status === 304) {
					if (known.current.failure) set({ failure: undefined });
				} else {
					if (!response.ok) throw await failure(response);
					const data = (await response.json()) as T;
					set({ tag: response.headers.get("ETag") ?? "", data, failure: undefined });
				}
				if (latest.current !== asked) pause = 0;
			} catch (error) {
				if (stop.signal.aborted) return;
				const problem = error instanceof Failure ? error : new Failure(0, String(error));
				set({ failure: problem });
				pause = Math.max(problem.retryAfter, interval);
			} finally {
				asking = false;
			}
			timer = window.setTimeout(ask, pause * 1000);
		};
		const visible = () => {
			if (document.hidden || asking) return; // an answer may take longer than the sign stays the same
			window.clearTimeout(timer);
			void ask();
		};
		again.current = visible;
		document.addEventListener("visibilitychange", visible);
		void ask();
		return () => {
			stop.abort();
			window.clearTimeout(timer);
			document.removeEventListener("visibilitychange", visible);
		};
	}, [daemon, operation, interval, maxAge, turn]);
	useEffect(() => again.current(), [sign]);
	return { data: known.current.data, failure: known.current.failure, refresh: () => setTurn((n) => n + 1) };
}
