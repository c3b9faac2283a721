// Translates #SBATCH lines to fields of a submission, as sbatch and schedctl
// submit do. Neither the gateway nor the controller reads these lines. The table
// of options is written by schedctl's tests, which also compare the two parsers.
import data from "./options.json";
import { now } from "./clock";
import { clusterDate, clusterMoment } from "./zone";

export { setZone } from "./zone"; // for the tests, which read this file alone

export type Fields = Record<string, any>;

/** What a script's #SBATCH lines say. */
export interface Directives {
	fields: Fields;
	/** Lines that were understood, with the fields that they set. */
	understood: { line: number; text: string; fields: string[] }[];
	/** Lines that were not understood, with the reason and what caused it. The script must not be submitted. */
	problems: { line: number; text: string; reason: Reason; word: string }[];
	/** Variables that options assign. */
	environment: string[];
}

/** Why a line was not understood. The last ones are the table's reasons for options that no submission can contain. */
export type Reason = "unknown" | "ambiguous" | "value" | "missing" | "none" | "argument" | "quote" | "export" | "exclusive" | "hetjob" | "command" | "field" | "file" | "cluster" | "identity";

class Invalid extends Error {
	constructor(readonly reason: Reason, readonly word: string) {
		super(reason);
	}
}

interface Option {
	name: string;
	letter: string;
	argument: number; // NONE, REQUIRED or OPTIONAL
	syntax: string;
	field: string;
	detail: any;
}

const [NONE, REQUIRED] = [0, 1];
const options: Option[] = (data.options as [string, string, number, string, string, any][]).map(([name, letter, argument, syntax, field, detail]) => ({ name, letter, argument, syntax, field, detail }));
const byName = new Map(options.map((o) => [o.name, o]));
const byLetter = new Map(options.filter((o) => o.letter).map((o) => [o.letter, o]));
const joined: string[] = data.joined;
const exclusive = Object.entries(data.exclusive as Record<string, string[]>);

/** Collects the options of a job. */
interface Reader {
	job: Fields;
	/** The values of joined fields by option. */
	parts: Record<string, Record<string, string | string[]>>;
	variables: string[];
	exported: string[];
	given: string[];
	now: Date;
}

const reader = (base: Fields, now: Date): Reader => ({ job: { ...base }, parts: {}, variables: [], exported: [], given: [], now });
const copy = (r: Reader): Reader => ({ ...r, job: { ...r.job }, parts: Object.fromEntries(Object.entries(r.parts).map(([field, values]) => [field, { ...values }])), variables: [...r.variables], given: [...r.given] });

const wrong = (): never => {
	throw new Invalid("value", "");
};
const num = (number: number) => ({ set: true, number });
const INT = 2 ** 31 - 1;

/** Sets a field, or adds a variable to the environment. Several options may contribute to a joined field. */
function put(r: Reader, o: Option, field: string, value: any): void {
	if (field === "variable") return void r.variables.push(value);
	if (!joined.includes(field)) return void (r.job[field] = value);
	(r.parts[field] ??= {})[o.name] = value;
	const parts = options.map((option) => r.parts[field][option.name]).filter((part) => part !== undefined && part !== "");
	const lists = parts.filter(Array.isArray).flat();
	const texts = parts.filter((part) => typeof part === "string");
	delete r.job[field];
	if (texts.length > 0) r.job[field] = texts.join(",");
	if (lists.length > 0) r.job[field] = lists;
}

function integer(v: string, low: number, high: number): number {
	const n = /^[+-]?\d+$/.test(v) ? Number(v) : NaN;
	return n >= low && n <= high ? n : wrong();
}
const count = (v: string, low: number) => integer(v, low, INT - 1);
const unsigned = (v: string, high: number) => (/^\d+$/.test(v) ? integer(v, 0, high) : wrong());

/** Returns an amount of memory in MiB, rounded up. */
function memoryOf(v: string): number {
	const match = /^(\d+)([KMGT]?)B?$/.exec(v.toUpperCase());
	const n = match ? Number(match[1]) : NaN;
	if (!match || !(n < 2 ** 40)) return wrong();
	return { K: Math.ceil(n / 1024), "": n, M: n, G: n * 1024, T: n * 1024 ** 2 }[match[2]]!;
}

/** Returns a duration in seconds: MINUTES, MIN:SEC, H:MIN:SEC, DAYS-H, DAYS-H:MIN or DAYS-H:MIN:SEC, or Infinity. */
function durationOf(v: string): number {
	if (["-1", "infinite", "unlimited"].includes(v.toLowerCase())) return Infinity;
	const dash = v.indexOf("-");
	const days = dash < 0 ? 0 : unsigned(v.slice(0, dash), 65535);
	const parts = (dash < 0 ? v : v.slice(dash + 1)).split(":");
	if (parts.length > 3) wrong();
	const units = dash < 0 && parts.length < 3 ? [60, 1] : [3600, 60, 1];
	const seconds = parts.reduce((sum, part, i) => sum + unsigned(part, INT) * units[i], days * 86400);
	return seconds > 9223372036 ? wrong() : seconds;
}

function finiteOf(v: string): number {
	const seconds = durationOf(v);
	return seconds < INT ? seconds : wrong();
}

const clock: Record<string, string> = { midnight: "00:00", elevenses: "11:00", noon: "12:00", fika: "15:00", teatime: "16:00" };

/** Returns the time that --begin means, in the zone of the cluster, as for sbatch there. */
function momentOf(v: string, now: Date): number {
	const lower = v.toLowerCase();
	const later = /^now(?:\+(\d+)([a-z]*))?$/.exec(lower);
	if (later) {
		if (later[1] === undefined) return Math.floor(now.getTime() / 1000);
		const unit = { "": 1, second: 1, minute: 60, hour: 3600, day: 86400, week: 604800 }[later[2].replace(/s$/, "")];
		return unit === undefined || later[2] === "s" ? wrong() : Math.floor(now.getTime() / 1000 + unsigned(later[1], INT) * unit);
	}
	const present = now.getTime() / 1000;
	let [year, month, day] = clusterDate(present);
	const date = /^(?:(\d{4})-(\d\d?)-(\d\d?)|(\d\d?)\/(\d\d?)(?:\/(\d\d))?|today|tomorrow)/.exec(lower);
	let rest = lower;
	if (date) {
		rest = lower.slice(date[0].length);
		if (rest.length === 1 || (rest !== "" && !"t- ".includes(rest[0]))) return wrong();
		const bare = rest.replace(/^[t -]+/, "");
		rest = clock[bare] ?? ((rest[0] === "t" && clock["t" + bare]) || bare);
	} else rest = clock[rest] ?? rest;
	let [hour, minute, second] = [0, 0, 0];
	if (rest !== "" || !date) {
		const m = /^(\d\d?):(\d\d)(?::(\d\d))?(am|pm)?$/.exec(rest) ?? wrong();
		[hour, minute, second] = [Number(m[1]), Number(m[2]), Number(m[3] ?? 0)];
		if (m[4] === "pm" && hour < 12) hour += 12;
		else if (m[4] === "am" && hour === 12) hour = 0;
		else if (m[4] && hour > 12) wrong();
		if (hour > 23 || minute > 59 || second > 59) wrong();
	}
	const at = () => clusterMoment(year, month, day, hour, minute, second);
	if (!date) {
		if (at() < present) day++;
	} else if (date[0] === "tomorrow") day++;
	else if (date[0] !== "today") {
		if (date[1]) [year, month, day] = [Number(date[1]), Number(date[2]) - 1, Number(date[3])];
		else [year, month, day] = [date[6] ? 2000 + Number(date[6]) : year, Number(date[4]) - 1, Number(date[5])];
		if (!date[1] && !date[6] && at() < present) year++;
		const check = new Date(Date.UTC(2000, month, day));
		check.setUTCFullYear(year, month, day);
		if (check.getUTCMonth() !== month || check.getUTCDate() !== day) wrong();
	}
	return at();
}

type Syntax = (r: Reader, o: Option, value: string) => void;

/** The syntaxes of values. Each parses a value and sets the option's fields. */
const syntaxes: Record<string, Syntax> = {
	text: (r, o, v) => put(r, o, o.field, v),
	file: (r, o, v) => void (r.job[o.field] = v.toLowerCase() === "none" ? "/dev/null" : v),
	fixed: (r, o) => put(r, o, o.field, o.detail),
	variable: (r, o) => void r.variables.push(o.detail),
	words(r, o, v) {
		const fields: Fields = own(o.detail, v.toLowerCase()) ?? wrong();
		if (o.name === "requeue") put(r, o, "flags", []);
		for (const [field, value] of Object.entries(fields)) put(r, o, field, value);
	},
	list(r, o, v) {
		let values: string[] = [];
		for (const word of v.toLowerCase().split(",")) {
			const more = own(o.detail, word);
			if (more === undefined) wrong();
			if (more === null) {
				values = [];
				break;
			}
			values.push(...more);
		}
		values = [...new Set(values)];
		if (o.name === "gres-flags" && values.length > 1) wrong();
		put(r, o, o.field, values);
		if (values.length === 0 && o.field === "mail_type") delete r.job.mail_type; // the API ignores an empty list, with a warning
	},
	hosts(r, o, v) {
		const names: string[] = [];
		let [depth, from] = [0, 0];
		for (let i = 0; i <= v.length; i++) {
			const c = v[i] ?? ",";
			if (c === "[") depth++;
			else if (c === "]") depth--;
			else if (c === "," && depth === 0) {
				if (i > from) names.push(v.slice(from, i));
				from = i + 1;
			}
		}
		if (depth !== 0 || names.length === 0) wrong();
		r.job[o.field] = names;
	},
	count: (r, o, v) => void (r.job[o.field] = count(v, o.detail)),
	number: (r, o, v) => void (r.job[o.field] = num(count(v, o.detail))),
	gpuCount: (r, o, v) => void (r.job[o.field] = `gres/gpu:${count(v, 1)}`),
	gpuMemory: (r, o, v) => void (r.job[o.field] = `gres/gpu:${memoryOf(v)}`),
	prefixed: (r, o, v) => put(r, o, o.field, o.detail + v),
	each: (r, o, v) => put(r, o, o.field, v.split(",").map((part) => o.detail + part).join(",")),
	gres: (r, o, v) => put(r, o, o.field, v.toLowerCase() === "none" ? "" : v.split(",").map((part) => (part.startsWith("gres/") ? part : `gres/${part}`)).join(",")),
	directory: (r, o, v) => void (r.job[o.field] = v.startsWith("/") ? v : `${(r.job[o.field] ?? "").replace(/\/+$/, "")}/${v}`),
	nodes(r, _, v) {
		let [low, high] = [2 ** 31, 0];
		for (const part of v.split(",")) {
			const m = /^(\d{1,9})([km]?)(?:-(\d{1,9})([km]?))?(?::\d{1,9})?$/i.exec(part) ?? wrong();
			const scaled = (digits: string, unit: string) => Number(digits) * ({ k: 1024, m: 1048576 }[unit.toLowerCase()] ?? 1);
			const from = scaled(m[1], m[2]);
			const to = m[3] ? scaled(m[3], m[4]) : from;
			if (from === 0 || to < from || to >= INT) wrong();
			[low, high] = [Math.min(low, from), Math.max(high, to)];
		}
		if (/[km]/i.test(v)) {
			if (/[,:]/.test(v)) wrong();
			v = low === high ? `${low}` : `${low}-${high}`;
		}
		Object.assign(r.job, { nodes: v, minimum_nodes: low, maximum_nodes: high });
	},
	nice: (r, o, v) => void (r.job[o.field] = v === "" ? 100 : integer(v, 2 - INT, INT - 2)),
	priority: (r, o, v) => void (r.job[o.field] = num(v.toUpperCase() === "TOP" ? 2 ** 32 - 3 : unsigned(v, 2 ** 32 - 3))),
	signal(r, o, v) {
		const m = /^(?:([RB]{1,2}):)?(?:SIG)?([A-Z0-9]+)(?:@(\d{1,9}))?$/i.exec(v) ?? wrong();
		const [targets, name] = [(m[1] ?? "").toUpperCase(), m[2].toUpperCase()];
		if (!o.detail.includes(name)) integer(name, 1, 64);
		r.job.kill_warning_signal = name;
		r.job.kill_warning_delay = num(unsigned(m[3] ?? "60", 65535));
		delete r.job.kill_warning_flags;
		if (targets) r.job.kill_warning_flags = [["B", "BATCH_JOB"], ["R", "RESERVATION_JOB"]].filter(([letter]) => targets.includes(letter)).map(([, flag]) => flag);
	},
	minutes(r, o, v) {
		const n = Math.ceil(durationOf(v) / 60);
		r.job[o.field] = n > 0 && n < Infinity ? num(n) : { set: false, infinite: true }; // as for sbatch, 0 means no limit
	},
	seconds: (r, o, v) => void (r.job[o.field] = finiteOf(v)),
	moment: (r, o, v) => void (r.job[o.field] = o.detail === "seconds" ? momentOf(v, r.now) : num(momentOf(v, r.now))),
	memory(r, o, v) {
		const n = memoryOf(v);
		delete r.job[o.detail];
		r.job[o.field] = num(n);
	},
	disk(r, o, v) {
		const n = memoryOf(v);
		r.job[o.field] = n <= INT ? n : wrong();
	},
	memoryBinding(r, o, v) {
		const flags: string[] = [];
		let nodeList = "";
		for (let rest = v.toLowerCase(); rest !== ""; ) {
			let [word, after] = cut(rest, ",");
			const list = /^(map_mem|mask_mem):(.*)$/s.exec(rest);
			if (list) [word, nodeList, after] = [list[1], list[2], ""];
			const more = own(o.detail, word) ?? wrong();
			if (/^(map|mask)_mem$/.test(word) && nodeList === "") wrong();
			flags.push(...more);
			rest = after;
		}
		r.job[o.field] = flags;
		delete r.job.memory_binding;
		if (nodeList) r.job.memory_binding = nodeList;
	},
	memoryUpdate(r, _, v) {
		const [margin, delay] = cut(v, "@");
		const [n, m] = [count(margin, 1), Math.ceil(durationOf(delay) / 60)];
		if (n > 65533 || m < 1 || m > 65533) wrong();
		Object.assign(r.job, { memory_update_margin: n, memory_update_delay: m });
	},
	switches(r, _, v) {
		const [most, wait] = cut(v, "@");
		const n = count(most, 1);
		delete r.job.wait_for_switch;
		if (v.includes("@")) r.job.wait_for_switch = finiteOf(wait);
		r.job.required_switches = num(n);
	},
	layout(r, _, v) {
		const parts = v.split(":");
		if (parts.length > 3) wrong();
		["sockets_per_node", "cores_per_socket", "threads_per_core"].forEach((field, i) => {
			delete r.job[field];
			if (i < parts.length && parts[i] !== "*") r.job[field] = count(parts[i], 1);
		});
	},
	export(r, _, v) {
		const list = v.split(",");
		// The page has no environment, so names without a value give nothing.
		r.exported = list.flatMap((word) => {
			const upper = word.toUpperCase();
			const nothing = upper === "NONE" || upper === "NIL";
			if (upper === "ALL" || (nothing && list.length === 1)) return [];
			if (word === "" || word.startsWith("=") || nothing || /^(SCHED|SLURM)_JWT=/.test(word)) throw new Invalid("export", "");
			return word.includes("=") ? [word] : [];
		});
	},
};

const own = (object: any, name: string) => (Object.hasOwn(object, name) ? object[name] : undefined);

function cut(text: string, separator: string): [string, string] {
	const at = text.indexOf(separator);
	return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** Returns the option with a long name, which may be abbreviated as long as it is unambiguous. */
function find(name: string): Option {
	const exact = byName.get(name);
	if (exact) return exact;
	const begun = name === "" ? [] : options.filter((o) => o.name.startsWith(name));
	if (begun.length !== 1) throw new Invalid(begun.length > 1 ? "ambiguous" : "unknown", `--${name}`);
	return begun[0];
}

const blanks = " \t\v\f\r";

/**
 * Splits a line into words as sbatch does. A # that is neither in quotes nor
 * after a backslash begins a comment, even within a word.
 */
function split(line: string): string[] {
	const list: string[] = [];
	let [word, inWord, quote, escaped] = ["", false, "", false];
	const end = () => {
		if (inWord) list.push(word);
		[word, inWord, escaped] = ["", false, false];
	};
	for (const c of line) {
		if (quote === "" && blanks.includes(c) && !(escaped && c === " ")) end();
		else if (escaped) [word, inWord, escaped] = [word + c, true, false];
		else if (c === "\\") escaped = true;
		else if (quote !== "" && c === quote) quote = "";
		else if (quote !== "") word += c;
		else if (c === "'" || c === '"') [inWord, quote] = [true, c];
		else if (c === "#") {
			end();
			return list;
		} else if (c === ":" && !inWord) throw new Invalid("argument", ":");
		else [word, inWord] = [word + c, true];
	}
	if (quote !== "") throw new Invalid("quote", line.trim());
	end();
	return list;
}

/** Applies an option. */
function set(r: Reader, o: Option, name: string, value: string, given: boolean): void {
	if (o.syntax === "refused") throw new Invalid(o.detail, name);
	if (o.argument === NONE && given) throw new Invalid("none", name);
	if (o.argument === REQUIRED && value === "") throw new Invalid("missing", name);
	for (const [first, others] of exclusive)
		for (const other of others)
			if ((o.name === first && r.given.includes(other)) || (o.name === other && r.given.includes(first))) throw new Invalid("exclusive", `--${first}, --${other}`);
	try {
		syntaxes[o.syntax](r, o, value);
	} catch (error) {
		throw error instanceof Invalid ? new Invalid(error.reason, `${name}=${value}`) : error;
	}
	r.given.push(o.name);
}

/** Applies the options in a list of words. */
function apply(words: string[], r: Reader): void {
	const rest = [...words];
	for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
		if (/^(het|pack)job$/i.test(word)) throw new Invalid("hetjob", word);
		if (word.length < 2 || word[0] !== "-" || word === "--") throw new Invalid("argument", word);
		if (word[1] === "-") {
			const [name, given] = cut(word.slice(2), "=");
			const option = find(name);
			let value = given;
			if (option.argument === REQUIRED && !word.includes("=")) {
				if (rest.length === 0) throw new Invalid("missing", `--${name}`);
				value = rest.shift()!;
			}
			set(r, option, `--${name}`, value, word.includes("="));
			continue;
		}
		for (let letters = word.slice(1); letters !== ""; ) {
			const name = `-${letters[0]}`;
			const option = byLetter.get(letters[0]);
			if (!option) throw new Invalid("unknown", name);
			letters = letters.slice(1);
			if (option.argument === NONE) {
				set(r, option, name, "", false);
				continue;
			}
			let value = letters.replace(/^=/, "");
			if (letters === "" && option.argument === REQUIRED) {
				if (rest.length === 0) throw new Invalid("missing", name);
				value = rest.shift()!;
			}
			set(r, option, name, value, true);
			break;
		}
	}
}

/** Returns the fields that one option sets, or undefined if its value is not valid. */
export function parseOption(name: string, value: string): Fields | undefined {
	const r = reader({}, new Date(now()));
	try {
		set(r, byName.get(name)!, `--${name}`, value, true);
		return r.job;
	} catch (error) {
		if (!(error instanceof Invalid)) throw error;
	}
}

/**
 * Reads the #SBATCH lines before the first command of a script. Lines that are
 * not understood set nothing. The argument base has the fields that a line may
 * build on, such as the working directory.
 */
export function parseScript(script: string, base: Fields = {}, at = new Date(now())): Directives {
	const result: Directives = { fields: {}, understood: [], problems: [], environment: [] };
	let r = reader(base, at);
	let line = 0;
	for (const text of script.split("\n")) {
		line++;
		const options = /^#(?:SBATCH|SLURM)(.*)$/s.exec(text);
		if (options) {
			const next = copy(r);
			try {
				apply(split(options[1]), next);
				const changed = Object.keys(next.job).filter((name) => JSON.stringify(next.job[name]) !== JSON.stringify(r.job[name]));
				if (next.exported !== r.exported || next.variables.length !== r.variables.length) changed.push("environment");
				result.understood.push({ line, text, fields: changed });
				r = next;
			} catch (error) {
				if (!(error instanceof Invalid)) throw error;
				result.problems.push({ line, text, reason: error.reason, word: error.word });
			}
			continue;
		}
		const blank = text.replace(/^[ \t\v\f\r]+/, "");
		if (blank !== "" && blank[0] !== "#") break;
	}
	const job = r.job;
	finish(job);
	result.fields = Object.fromEntries(Object.entries(job).filter(([name, v]) => base[name] !== v));
	result.environment = [...r.exported, ...r.variables];
	return result;
}

/** Returns the variables that sbatch sets for the options of a job. Controllers do not set them for jobs from the REST API. */
export function variablesOf(job: Fields): string[] {
	return Object.entries(data.variables).filter(([field]) => job[field] !== undefined).map(([field, name]) => `${name}=${job[field]}`);
}

/** Sets the fields whose values depend on other fields, as sbatch does. */
function finish(job: Fields): void {
	const nodes = Math.max(job.minimum_nodes ?? 1, 1);
	if (job.ntasks_per_tres !== undefined && job.tasks === undefined) {
		const tasks = job.ntasks_per_tres * (countGPUs(job.tres_per_job) || nodes * countGPUs(job.tres_per_node));
		if (tasks > 0) job.tasks = tasks;
	}
	const cpus = /(?:^|,)cpu[:=]([1-9][0-9]{0,4})(?:,|$)/.exec(job.tres_per_task ?? "");
	if (cpus && job.cpus_per_task === undefined) job.cpus_per_task = Number(cpus[1]);
	if (job.overcommit === true) job.minimum_cpus = nodes;
	else if (job.tasks !== undefined || job.cpus_per_task !== undefined) job.minimum_cpus = Math.max(job.tasks ?? 1, 1) * Math.max(job.cpus_per_task ?? 1, 1);
}

/** Returns the number of GPUs in a list such as "gres/gpu:a100:2,gres/gpu". A missing count means one. */
function countGPUs(list = ""): number {
	let n = 0;
	for (const part of list.split(",")) {
		const m = /^gres\/gpu(?:[:=].*)?$/s.exec(part);
		if (!m) continue;
		const count = part.slice(Math.max(part.lastIndexOf(":"), part.lastIndexOf("=")) + 1);
		n += /^\d+$/.test(count) && Number(count) < 65536 ? Number(count) : 1;
	}
	return n;
}
