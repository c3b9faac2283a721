// A Collection is a list of the controller that the page keeps up to date. The
// page has one reader for each list, however many views show it: a stream of
// events or, where streams do not work, conditional requests. A hidden page
// reads nothing.
import { breathe } from "./breathe";
import { read } from "./events";
import { Failure, failure, path, send, session } from "./session";

export type Key = string | number;

/** What a Collection reads. */
export interface Source<T> {
	/** Name of the list in answers, such as "jobs". */
	list: string;
	/** Field that identifies a record. */
	key: string;
	fields: readonly string[];
	/** Fields that only this version of the API and later ones have. */
	since?: Record<string, string>;
	/** Converts a record of the answer. */
	parse(record: any): T;
	/** Whether the list is important enough for a connection of its own. */
	stream: boolean;
	/** Pause between conditional requests, in seconds. */
	interval: number;
}

export type Mode = "off" | "stream" | "poll";

/** A change of one record. A new record has no before, a removed one no after. */
export interface Change<T> {
	before?: T;
	after?: T;
}

interface Page<T> {
	query: string;
	tag: string;
	items: Map<Key, T>;
	next: string;
}

const LINGER = 20_000; // ms for which a list without views, or a hidden page, is still read
const SILENCE = 40_000; // ms after which a stream is lost; the gateway sends a comment every 15 s
const FIRST = 10_000; // ms in which a stream must begin; otherwise a proxy collects it
const RETRY_STREAM = 600_000; // ms for which requests replace a stream that failed
const RETRY_LATE = 60_000; // ms for which they replace one that is late
const NOTIFY = 400; // ms between two renderings

export class Collection<T> {
	items = new Map<Key, T>();
	/** Whether items is, or was, a complete list. */
	complete = false;
	/** Changes with items. */
	revision = 0;
	failure?: Failure;
	mode: Mode = "off";
	/** When the list was last known to be current, as performance.now(). */
	current = 0;

	private listeners = new Set<() => void>();
	private changeListeners = new Set<(changes: Change<T>[]) => void>();
	private users = 0;
	private running?: AbortController;
	private lastID = "";
	private pages: Page<T>[] = [];
	private noStreamUntil = 0;
	private stopTimer = 0;
	private notifyTimer = 0;
	private changes: Change<T>[] = [];
	private wake?: () => void;
	/** Whether the list is to be read again at once. */
	private outdated = false;
	private extra: readonly string[] = [];

	constructor(readonly source: Source<T>) {
		document.addEventListener("visibilitychange", () => this.reconsider());
	}

	/** Keeps the list up to date until the returned function is called. */
	use(): () => void {
		this.users++;
		this.reconsider();
		return () => {
			this.users--;
			this.reconsider();
		};
	}

	/** Calls a function after changes, until the returned function is called. */
	subscribe(listener: () => void): () => void {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	/** Calls a function with the changes of a list that was already complete. */
	onChanges(listener: (changes: Change<T>[]) => void): void {
		this.changeListeners.add(listener);
	}

	/** Asks for more fields than those of the source. */
	want(extra: readonly string[]): void {
		if (extra.join() === this.extra.join()) return;
		this.extra = extra;
		this.lastID = "";
		this.pages = [];
		if (this.running) this.restart();
	}

	/** Reads the list again at once, or after the request under way, which may miss a change. A stream is current anyway. */
	refresh(): void {
		if (this.mode === "stream") return;
		this.outdated = true;
		this.wake?.();
	}

	/** Forgets everything. */
	clear(): void {
		this.stop();
		this.items = new Map();
		this.complete = false;
		this.failure = undefined;
		this.lastID = "";
		this.pages = [];
		this.changes = [];
		this.noStreamUntil = 0;
		this.notify(true);
	}

	private reconsider(): void {
		window.clearTimeout(this.stopTimer);
		if (this.users > 0 && !document.hidden) this.begin();
		else if (this.running) this.stopTimer = window.setTimeout(() => this.stop(), LINGER);
	}

	private begin(): void {
		if (this.running || session.phase !== "signed in") return;
		this.running = new AbortController();
		void this.run(this.running.signal);
	}

	private stop(): void {
		window.clearTimeout(this.stopTimer);
		this.running?.abort();
		this.running = undefined;
		this.mode = "off";
	}

	private restart(): void {
		this.stop();
		this.begin();
	}

	private async run(signal: AbortSignal): Promise<void> {
		for (let failures = 0; !signal.aborted; ) {
			let pause = this.source.interval * 1000;
			const maxAge = this.outdated ? 0 : this.source.interval;
			this.outdated = false;
			try {
				if (this.source.stream && performance.now() >= this.noStreamUntil) {
					pause = await this.follow(signal);
				} else {
					await this.poll(signal, maxAge);
				}
				failures = 0;
				this.settle(undefined);
			} catch (error) {
				if (signal.aborted) return;
				const problem = error instanceof Failure ? error : new Failure(0, String(error));
				if (problem.status === 401) return; // the session has ended
				this.settle(problem);
				pause = Math.max(problem.retryAfter * 1000, Math.min(60_000, 2000 * 2 ** failures++));
			}
			if (!this.outdated) await this.sleep(pause * (0.9 + 0.2 * Math.random()), signal);
		}
	}

	private sleep(ms: number, signal: AbortSignal): Promise<void> {
		return new Promise((resolve) => {
			const timer = window.setTimeout(done, ms);
			function done() {
				window.clearTimeout(timer);
				signal.removeEventListener("abort", done);
				resolve();
			}
			this.wake = done;
			signal.addEventListener("abort", done, { once: true });
		});
	}

	private query(rest: string): string {
		const known = (field: string) => session.version >= (this.source.since?.[field] ?? "");
		const fields = [...new Set([...this.source.fields, ...this.extra])].filter(known).join(",");
		return path("controller", `${this.source.list}/?${rest}fields=${fields}`);
	}

	/**
	 * Follows a stream of events until it ends, and returns for how long to wait
	 * before the next one. If streams do not work here, requests replace them for
	 * a while.
	 */
	private async follow(signal: AbortSignal): Promise<number> {
		const limit = new AbortController();
		const abort = () => limit.abort();
		signal.addEventListener("abort", abort, { once: true });
		let watchdog = window.setTimeout(abort, FIRST);
		const began = performance.now();
		let events = 0;
		try {
			const headers: Record<string, string> = { Accept: "text/event-stream" };
			if (this.lastID) headers["Last-Event-ID"] = this.lastID;
			const response = await send(this.query(""), { headers, signal: limit.signal });
			if (!response.ok || !response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
				const problem = await failure(response);
				if ([401, 403, 503].includes(problem.status)) throw problem;
				this.noStreamUntil = performance.now() + RETRY_STREAM;
				return 0;
			}
			let next: Map<Key, T> | undefined = this.lastID ? undefined : new Map();
			await read(response, (event) => {
				events++;
				switch (event.name) {
					case "reset":
						next = new Map();
						break;
					case "snapshot": {
						next ??= new Map();
						const data = JSON.parse(event.data);
						for (const record of data[this.source.list]) next.set(record[this.source.key], this.source.parse(record));
						if (!data.more) {
							this.replace(next);
							next = undefined;
						}
						break;
					}
					case "removed":
						this.put(JSON.parse(event.data)[this.source.key], undefined);
						break;
					case "added":
					case "changed": {
						const record = JSON.parse(event.data);
						this.put(record[this.source.key], this.source.parse(record));
						break;
					}
					case "late":
						if (JSON.parse(event.data).seconds > 0) {
							this.noStreamUntil = performance.now() + RETRY_LATE;
							abort();
						}
				}
				if (event.id) this.lastID = event.id;
				if (this.complete) this.settle(undefined, "stream");
			}, () => {
				window.clearTimeout(watchdog);
				watchdog = window.setTimeout(abort, SILENCE);
				this.current = performance.now();
			}, limit.signal);
		} catch (error) {
			if (signal.aborted || error instanceof Failure) throw error;
		} finally {
			window.clearTimeout(watchdog);
			signal.removeEventListener("abort", abort);
		}
		if (events === 0 && !this.lastID || events > 0 && performance.now() - began < 3000) {
			this.noStreamUntil = performance.now() + (events === 0 ? RETRY_STREAM : RETRY_LATE);
		}
		return this.noStreamUntil > performance.now() ? 0 : 1000;
	}

	/**
	 * Reads the list with conditional requests, a page at a time. Pages that have
	 * not changed are not sent again. The gateway may answer with data that it has
	 * read for another client, and that is at most maxAge seconds old. The pages after
	 * the first come from what it has read for that one.
	 */
	private async poll(signal: AbortSignal, maxAge: number): Promise<void> {
		const pages: Page<T>[] = [];
		this.lastID = "";
		for (let rest = "limit=1000&"; rest !== ""; ) {
			const old = this.pages[pages.length]?.query === rest ? this.pages[pages.length] : undefined;
			const headers: Record<string, string> = { Accept: "application/json", "Cache-Control": `max-age=${pages.length === 0 ? maxAge : this.source.interval}` };
			if (old?.tag) headers["If-None-Match"] = old.tag;
			const response = await send(this.query(rest), { headers, signal });
			let page = old!;
			if (response.status !== 304 || !old) {
				if (!response.ok) throw await failure(response);
				const answer = await response.json();
				page = { query: rest, tag: response.headers.get("ETag") ?? "", items: new Map(), next: answer.meta.continue ?? "" };
				for (const record of answer[this.source.list]) {
					page.items.set(record[this.source.key], this.source.parse(record));
					await breathe();
				}
			}
			pages.push(page);
			rest = page.next && `limit=1000&continue=${page.next}&`;
			await breathe();
		}
		signal.throwIfAborted();
		const changed = pages.length !== this.pages.length || pages.some((page, i) => page !== this.pages[i]);
		this.pages = pages;
		if (changed || !this.complete) this.replace(new Map(pages.flatMap((page) => [...page.items])));
		this.current = performance.now();
		this.settle(undefined, "poll");
	}

	private put(key: Key, after: T | undefined): void {
		const before = this.items.get(key);
		if (after === undefined) this.items.delete(key);
		else this.items.set(key, after);
		this.changes.push({ before, after });
		this.revision++;
		this.notify();
	}

	private replace(next: Map<Key, T>): void {
		const old = this.items;
		if (this.complete) {
			for (const [key, after] of next) {
				const before = old.get(key);
				if (before !== after) this.changes.push({ before, after });
			}
			for (const [key, before] of old) if (!next.has(key)) this.changes.push({ before });
		}
		this.items = next;
		this.complete = true;
		this.revision++;
		this.notify();
	}

	private settle(problem: Failure | undefined, mode: Mode = this.mode): void {
		if (this.failure === problem && this.mode === mode) return;
		this.failure = problem;
		this.mode = mode;
		this.notify();
	}

	private notify(now = false): void {
		if (!now && this.notifyTimer) return;
		window.clearTimeout(this.notifyTimer);
		const tell = () => {
			this.notifyTimer = 0;
			const changes = this.changes;
			this.changes = [];
			if (changes.length > 0) for (const listener of this.changeListeners) listener(changes);
			for (const listener of this.listeners) listener();
		};
		if (now) tell();
		else this.notifyTimer = window.setTimeout(tell, this.complete && this.revision > 1 ? NOTIFY : 0);
	}
}
