// Trackable resources, as Slurm writes them: "cpu=4,mem=8G,node=1,gres/gpu=2",
// and generic resources: "gpu:a100:4(S:0-1),nic:1".

/** Returns the amounts in a list of trackable resources. Memory is in MiB. */
export function parseTRES(text: string): Map<string, number> {
	const amounts = new Map<string, number>();
	for (const part of text.split(",")) {
		const equals = part.indexOf("=");
		if (equals <= 0) continue;
		const match = /^([0-9.]+)([KMGTP]?)/.exec(part.slice(equals + 1));
		if (!match) continue;
		const name = part.slice(0, equals);
		const unit = name === "mem" ? { "": 1, K: 1 / 1024, M: 1, G: 1024, T: 1024 ** 2, P: 1024 ** 3 } : { "": 1, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };
		amounts.set(name, Number(match[1]) * unit[match[2] as keyof typeof unit]);
	}
	return amounts;
}

/** Returns the number of GPUs in a list of trackable resources. */
export function gpusOfTRES(text: string): number {
	if (!text.includes("gres/gpu")) return 0;
	const amounts = parseTRES(text);
	let typed = 0;
	for (const [name, amount] of amounts) if (name.startsWith("gres/gpu:")) typed += amount;
	return amounts.get("gres/gpu") ?? typed;
}

/** Returns the number of GPUs in a list of generic resources. */
export function gpusOfGRES(text: string): number {
	let count = 0;
	for (const [, number] of text.matchAll(/(?:^|,)gpu(?::[^:,()]+)?:(\d+)/g)) count += Number(number);
	return count;
}
