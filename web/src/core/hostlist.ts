// Host lists, such as "n[1-3,7],login".

/** Returns whether a host list contains a name. */
export function hostlistHas(list: string, name: string): boolean {
	let depth = 0;
	let from = 0;
	for (let i = 0; i <= list.length; i++) {
		const c = list[i] ?? ",";
		if (c === "[") depth++;
		else if (c === "]") depth--;
		else if (c === "," && depth === 0) {
			if (i > from && has(list.slice(from, i), name)) return true;
			from = i + 1;
		}
	}
	return false;
}

/** Returns whether one expression, such as "r[1-2]n[01-16]", contains a name. */
function has(expression: string, name: string): boolean {
	const open = expression.indexOf("[");
	if (open < 0) return expression === name;
	const close = expression.indexOf("]", open);
	if (close < 0 || !name.startsWith(expression.slice(0, open))) return false;
	const rest = name.slice(open);
	for (const range of expression.slice(open + 1, close).split(",")) {
		const [low, high = low] = range.split("-");
		// The digits of the name are as long as those of the range, or longer if the numbers have grown.
		for (let length = low.length; length <= high.length && length <= rest.length; length++) {
			const digits = rest.slice(0, length);
			if (/^\d+$/.test(digits) && Number(digits) >= Number(low) && Number(digits) <= Number(high) && (length === low.length || digits[0] !== "0") && has(expression.slice(close + 1), rest.slice(length))) return true;
		}
	}
	return false;
}
