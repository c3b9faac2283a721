// Keeps the answer to one request up to date: by waiting requests for a record
// of the controller, which are answered as soon as it changes, and otherwise by
// asking again from time to time.
import { useEffect, useState } from "preact/hooks";
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
	/** Whether the gateway can wait for changes of the answer. */
	waits?: boolean;
	/** Seconds between two requests; 0 for only one. */
	interval: number;
	/** Seconds for which the answer may be old. */
	maxAge?: number;
}

export function useAnswer<T>({ daemon, operation, waits, interval, maxAge }: Options): Answer<T> {
	const [state, setState] = useState<{ operation: string; data?: T; failure?: Failure }>({ operation });
	const [turn, setTurn] = useState(0);
	useEffect(() => {
		if (operation === "") return;
		const stop = new AbortController();
		let tag = "";
		let timer = 0;
		let asking = false;
		const ask = async (): Promise<void> => {
			if (asking || stop.signal.aborted) return;
			if (document.hidden) return; // visible asks again
			asking = true;
			let pause = interval;
			try {
				const headers: Record<string, string> = { Accept: "application/json" };
				if (tag) headers["If-None-Match"] = tag;
				if (maxAge) headers["Cache-Control"] = `max-age=${maxAge}`;
				const wait = waits && tag ? `${operation.includes("?") ? "&" : "?"}wait=30s` : "";
				const response = await send(path(daemon, operation + wait), { headers, signal: stop.signal });
				if (response.status !== 304) {
					if (!response.ok) throw await failure(response);
					tag = response.headers.get("ETag") ?? "";
					const data = (await response.json()) as T;
					setState({ operation, data });
				} else {
					setState((old) => (old.failure ? { ...old, failure: undefined } : old));
				}
				if (waits && tag) pause = 1;
			} catch (error) {
				if (stop.signal.aborted) return;
				const problem = error instanceof Failure ? error : new Failure(0, String(error));
				setState((old) => ({ ...(old.operation === operation ? old : { operation }), failure: problem }));
				pause = [0, 429, 502, 503, 504].includes(problem.status) ? Math.max(problem.retryAfter, interval, 5) : 0;
			} finally {
				asking = false;
			}
			if (pause > 0) timer = window.setTimeout(ask, pause * 1000);
		};
		const visible = () => {
			if (document.hidden || asking || interval === 0) return;
			window.clearTimeout(timer);
			void ask();
		};
		document.addEventListener("visibilitychange", visible);
		void ask();
		return () => {
			stop.abort();
			window.clearTimeout(timer);
			document.removeEventListener("visibilitychange", visible);
		};
	}, [daemon, operation, waits, interval, maxAge, turn]);
	const current = state.operation === operation ? state : { data: undefined, failure: undefined };
	return { data: current.data, failure: current.failure, refresh: () => setTurn((n) => n + 1) };
}
