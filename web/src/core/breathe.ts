// Long work is done in slices, so that the page stays responsive.

const SLICE = 16; // milliseconds, a frame
let since = 0;
const channel = new MessageChannel();
const waiting: (() => void)[] = [];
channel.port1.onmessage = () => waiting.shift()?.();

/** Lets the browser do other work, if the last time was more than a slice ago. */
export function breathe(): Promise<void> | void {
	if (performance.now() - since < SLICE) return;
	return new Promise((resolve) => {
		waiting.push(() => {
			since = performance.now();
			resolve();
		});
		channel.port2.postMessage(0); // unlike a timer, this is not delayed
	});
}
