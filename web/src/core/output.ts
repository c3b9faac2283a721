// Follows a file with the output of a job: first its end, then, as a stream of
// events, what the job writes. Where streams do not work, or a line is too long for
// them, the end is read again and again.
import { read } from "./events";
import { visibleLines } from "./format";
import { Failure, failure, ownPaths, path, send } from "./session";

const FIRST = 200; // lines that are shown at first
const LINES = 2000; // that are kept
const SIZE = 1_000_000; // characters that are kept
const END = 100_000; // bytes that are read at first
const PAUSE = 5000; // milliseconds between two requests without a stream
const SILENCE = 60_000; // milliseconds after which a silent stream has broken; the gateway sends a comment every 15 seconds
const LINGER = 20_000; // milliseconds for which a hidden page goes on
const RENDER = 250; // milliseconds between two changes of what is shown

let off = false; // the gateway does not read output

/** Returns whether the gateway may read output. Only its own paths have the operation. */
export const readsOutput = (): boolean => !off && ownPaths();

/** The reason in the last event of a stream that needs no successor. */
const ENDED = "the job has ended";

const STYLES = /\u001b\[[0-9;]*[mK]/g; // colours, and those that erase the rest of a line

/** Returns what is left of a line after its progress bars have written over it, without styles. */
const lastState = (line: string): string => line.replace(STYLES, "").replace(/(?<!\r)\r+$/, "").replace(/^.*\r/s, "");

/** The last lines of a text that grows, as they are shown. */
export class Lines {
	private lines: string[] = [];
	private size = 0; // of lines
	private rest = ""; // the line that is not complete
	/** Whether the beginning of the text is not kept. */
	dropped = false;

	add(text: string): void {
		const parts = (this.rest + text).split("\n");
		this.rest = parts.pop()!.replace(/^.*\r(?=.)/s, "");
		for (const part of parts) {
			const line = visibleLines(lastState(part), SIZE);
			this.lines.push(line);
			this.size += line.length + 1;
		}
		let surplus = Math.max(0, this.lines.length - LINES);
		for (let i = 0; i < this.lines.length && (i < surplus || this.size + this.rest.length > SIZE); i++) {
			this.size -= this.lines[i].length + 1;
			surplus = Math.max(surplus, i + 1);
		}
		if (surplus > 0) this.lines.splice(0, surplus);
		const long = this.rest.length > SIZE;
		if (long) this.rest = this.rest.slice(-SIZE / 2);
		this.dropped ||= surplus > 0 || long;
	}

	/** Forgets all lines but the last ones. */
	keep(lines: number): void {
		if (this.lines.length <= lines) return;
		this.lines = this.lines.slice(-lines);
		this.size = this.lines.reduce((n, line) => n + line.length + 1, 0);
		this.dropped = true;
	}

	get count(): number {
		return this.lines.length;
	}

	toString(): string {
		return [...this.lines, visibleLines(lastState(this.rest), Infinity)].join("\n");
	}
}

/** What the page knows of a file. */
export interface Shown {
	text: string;
	/** Whether the file begins before the text. */
	dropped: boolean;
	/** Whether the file was read. */
	known: boolean;
	/** Why it can't be read, or not at present. */
	failure?: Failure;
}

/** Follows a file until it is stopped, or until the job has ended. */
export class Output {
	private lines = new Lines();
	private known = false;
	private failure?: Failure;
	private lastID = "";
	private running?: AbortController;
	private finished = false;
	private stopTimer = 0;
	private showTimer = 0;

	/** The function over reports whether the job has ended. */
	constructor(private readonly operation: string, private readonly over: () => boolean, private readonly show: (shown: Shown) => void) {
		document.addEventListener("visibilitychange", this.reconsider);
		this.reconsider();
	}

	stop(): void {
		document.removeEventListener("visibilitychange", this.reconsider);
		window.clearTimeout(this.showTimer);
		this.abort();
	}

	private reconsider = (): void => {
		window.clearTimeout(this.stopTimer);
		if (document.hidden) this.stopTimer = window.setTimeout(() => this.abort(), LINGER);
		else if (!this.running && !this.finished) {
			this.running = new AbortController();
			void this.run(this.running.signal);
		}
	};

	private abort(): void {
		window.clearTimeout(this.stopTimer);
		this.running?.abort();
		this.running = undefined;
	}

	private changed(): void {
		this.showTimer ||= window.setTimeout(() => {
			this.showTimer = 0;
			this.show({ text: String(this.lines), dropped: this.lines.dropped, known: this.known, failure: this.failure });
		}, RENDER);
	}

	private settle(problem: Failure | undefined): void {
		this.failure = problem;
		this.changed();
	}

	private async run(signal: AbortSignal): Promise<void> {
		for (let failures = 0; !signal.aborted && !this.finished; ) {
			let pause = PAUSE;
			try {
				const over = this.over(); // before the file is read
				if (!this.lastID) await this.last(signal);
				this.settle(undefined);
				if (over && !this.lastID) this.finished = true;
				else if (this.lines.count > 0 || !this.lines.dropped) pause = await this.follow(signal);
				failures = 0;
			} catch (error) {
				if (signal.aborted) return;
				const problem = error instanceof Failure ? error : new Failure(0, String(error));
				this.settle(problem);
				this.lastID = "";
				off ||= problem.status === 501;
				this.finished = ![0, 404, 408, 429].includes(problem.status) && problem.status < 500 || problem.status === 501 || problem.status === 404 && this.over();
				pause = Math.max(problem.retryAfter * 1000, Math.min(60_000, 2000 * 2 ** failures++));
			}
			if (!this.finished) await new Promise((resolve) => window.setTimeout(resolve, pause));
		}
	}

	/** Reads the end of the file. */
	private async last(signal: AbortSignal): Promise<void> {
		const response = await send(path("controller", this.operation), { headers: { Accept: "text/plain", Range: `bytes=-${END}` }, signal });
		const lines = new Lines();
		if (response.status !== 416) { // the file is empty
			if (!response.ok) throw await failure(response);
			const begins = Number(/^bytes (\d+)-/.exec(response.headers.get("Content-Range") ?? "")?.[1] ?? 0);
			const text = await response.text();
			const first = begins > 0 ? text.indexOf("\n") + 1 : 0; // the first line is not complete
			lines.add(text.slice(first));
			lines.dropped ||= begins > 0;
			lines.keep(FIRST);
		}
		this.lines = lines;
		this.known = true;
	}

	/** Follows the file with a stream until it ends. Returns for how long to wait before the next request. */
	private async follow(signal: AbortSignal): Promise<number> {
		const limit = new AbortController();
		const abort = () => limit.abort();
		signal.addEventListener("abort", abort, { once: true });
		let watchdog = window.setTimeout(abort, SILENCE);
		let events = 0;
		try {
			const headers: Record<string, string> = { Accept: "text/event-stream" };
			let fresh = !this.lastID; // the first events have lines that are shown already
			if (this.lastID) headers["Last-Event-ID"] = this.lastID;
			const tail = Math.max(1, Math.min(FIRST, this.lines.count));
			const response = await send(path("controller", `${this.operation}?tail=${tail}`), { headers, signal: limit.signal });
			if (!response.ok) throw await failure(response);
			if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
				void response.body?.cancel();
				return PAUSE;
			}
			await read(response, (event) => {
				events++;
				const data = JSON.parse(event.data);
				switch (event.name) {
					case "reset":
						this.lines = new Lines();
						fresh = false;
						break;
					case "output":
						if (fresh) {
							this.lines = new Lines();
							this.lines.dropped = data.offset > 0;
						}
						fresh = false;
						this.lines.add(data.text);
						break;
					case "end":
						this.finished = data.reason === ENDED;
				}
				if (event.id) this.lastID = event.id;
				this.changed();
			}, () => {
				window.clearTimeout(watchdog);
				watchdog = window.setTimeout(abort, SILENCE);
			}, limit.signal);
		} catch (error) {
			if (signal.aborted || error instanceof Failure) throw error;
		} finally {
			window.clearTimeout(watchdog);
			signal.removeEventListener("abort", abort);
		}
		return events > 0 ? 1000 : PAUSE;
	}
}

/** Reads the whole file. */
export async function whole(operation: string): Promise<Blob> {
	const response = await send(path("controller", operation), { headers: { Accept: "text/plain" } });
	if (!response.ok) throw await failure(response);
	return await response.blob();
}
