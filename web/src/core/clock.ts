// The gateway's clock, with which the page compares the times of the cluster. This
// computer's clock may be wrong, or be set while the page is open.

/** What is added to performance.now(), which nothing sets, for the gateway's time. Until the first answer, this computer's clock is used. */
let offset = Date.now() - performance.now();

/** Returns the time on the gateway's clock, in milliseconds since 1970. */
export const now = (): number => performance.now() + offset;

/**
 * Sets the clock by the Date header of an answer to a request that was sent at a
 * time of performance.now(). The header has whole seconds, and the answer took a
 * while, so the clock is only changed if it can't be right.
 */
export function setClock(date: string | null, sent: number): void {
	const from = Date.parse(date ?? "");
	if (Number.isNaN(from)) return;
	offset = Math.max(from - performance.now(), Math.min(from + 1000 - sent, offset));
}
