// Reads streams of events (text/event-stream) with fetch: an EventSource can't
// send a token.
import { breathe } from "./breathe";

/** One event. The gateway sends the data in a single line. */
export interface Event {
	name: string;
	id: string;
	data: string;
}

/** Splits text that arrives in pieces into events. */
export class Parser {
	private rest: string[] = [];
	private event: Event = { name: "message", id: "", data: "" };

	/** Takes a piece and returns the events that are complete. */
	take(piece: string): Event[] {
		const events: Event[] = [];
		let from = 0;
		for (let end = piece.indexOf("\n"); end >= 0; end = piece.indexOf("\n", from)) {
			this.rest.push(piece.slice(from, end));
			this.line(this.rest.join("").replace(/\r$/, ""), events);
			this.rest = [];
			from = end + 1;
		}
		if (from < piece.length) this.rest.push(piece.slice(from));
		return events;
	}

	private line(line: string, events: Event[]): void {
		if (line === "") {
			if (this.event.data !== "") events.push(this.event);
			this.event = { name: "message", id: "", data: "" };
			return;
		}
		const colon = line.indexOf(":");
		const field = colon < 0 ? line : line.slice(0, colon);
		const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
		switch (field) {
			case "event":
				this.event.name = value;
				break;
			case "id":
				this.event.id = value;
				break;
			case "data":
				this.event.data += (this.event.data && "\n") + value;
		}
	}
}

/**
 * Calls handle for each event of a response until it ends or the signal is
 * aborted. Calls alive whenever anything arrives, also a comment.
 */
export async function read(response: Response, handle: (event: Event) => void, alive: () => void, signal: AbortSignal): Promise<void> {
	const parser = new Parser();
	const reader = response.body!.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
	for (let part = await reader.read(); !part.done; part = await reader.read()) {
		alive();
		for (const event of parser.take(part.value)) {
			handle(event);
			await breathe();
			signal.throwIfAborted();
		}
	}
}
