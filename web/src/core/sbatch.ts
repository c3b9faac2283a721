// Translates #SBATCH lines to fields of a submission. Neither the gateway nor
// the controller reads these lines. The table is that of schedctl submit; a test
// compares the two.

export type Fields = Record<string, any>;

/** What a script's #SBATCH lines say. */
export interface Directives {
	fields: Fields;
	/** Lines that were understood, with the fields that they set. */
	understood: { line: number; text: string; fields: string[] }[];
	/** Lines that were not understood, with the reason. */
	problems: { line: number; text: string; reason: Reason; word: string }[];
	/** Variables of --export. */
	environment: string[];
}

/** Why a line was not understood. */
export type Reason = "unknown" | "value" | "missing" | "none" | "argument" | "quote" | "export";

class Invalid extends Error {
	constructor(readonly reason: Reason, readonly word: string) {
		super(reason);
	}
}

type Setter = (job: Fields, value: string, context: Context) => void;

interface Context {
	now: Date;
	export?: string;
}

interface Option {
	name: string;
	letter: string;
	argument: "none" | "required" | "optional";
	set: Setter;
}

const wrong = (): never => {
	throw new Invalid("value", "");
};
const num = (number: number) => ({ set: true, number });
const text = (field: string): Setter => (job, v) => void (job[field] = v);
const fixed = (field: string, value: unknown): Setter => (job) => void (job[field] = value);

function integer(v: string, low: number, high: number): number {
	const n = /^[+-]?\d+$/.test(v) ? Number(v) : NaN;
	return n >= low && n <= high ? n : wrong();
}
const unsigned = (v: string, high: number) => (/^\d+$/.test(v) ? integer(v, 0, high) : wrong());
const number = (field: string, low: number): Setter => (job, v) => void (job[field] = integer(v, low, 2 ** 31 - 1));

/** Splits a list of host names. Commas within brackets are part of a name. */
const hosts = (field: string): Setter => (job, v) => {
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
	if (depth !== 0) wrong();
	job[field] = names;
};

const prefixed = (field: string, resource: string): Setter => (job, v) => void (job[field] = v.split(",").map((part) => `${resource}:${part}`).join(","));

/** Returns an amount of memory in MiB, rounded up. */
function memoryOf(v: string): number {
	const match = /^(\d+)([BKMGT]*)$/.exec(v.toUpperCase());
	const n = match ? Number(match[1]) : NaN;
	if (!match || !(n < 2 ** 40)) return wrong();
	switch (match[2].replace(/B$/, "")) {
		case "K":
			return Math.floor((n + 1023) / 1024);
		case "":
		case "M":
			return n;
		case "G":
			return n * 1024;
		case "T":
			return n * 1024 ** 2;
	}
	return wrong();
}

const memory = (field: string, other: string): Setter => (job, v) => {
	const n = memoryOf(v);
	delete job[other];
	job[field] = num(n);
};

/** Returns a duration in seconds: MINUTES, MIN:SEC, H:MIN:SEC, DAYS-H, DAYS-H:MIN or DAYS-H:MIN:SEC. */
function durationOf(v: string): number {
	const dash = v.indexOf("-");
	const days = dash < 0 ? 0 : unsigned(v.slice(0, dash), 65535);
	const parts = (dash < 0 ? v : v.slice(dash + 1)).split(":");
	if (parts.length > 3) wrong();
	const units = dash < 0 && parts.length < 3 ? [60, 1] : [3600, 60, 1];
	const seconds = parts.reduce((sum, part, i) => sum + unsigned(part, 2 ** 31 - 1) * units[i], days * 86400);
	return seconds > 9223372036 ? wrong() : seconds;
}

const limit = (field: string): Setter => (job, v) => {
	if (["-1", "infinite", "unlimited"].includes(v.toLowerCase())) job[field] = { set: false, infinite: true };
	else job[field] = num(Math.ceil(durationOf(v) / 60));
};

/** Returns the time that --begin means, in the zone of the browser. */
function beginOf(v: string, now: Date): number {
	const seconds = (date: Date) => Math.floor(date.getTime() / 1000);
	const lower = v.toLowerCase();
	if (lower === "now") return seconds(now);
	const later = /^now\+(\d+)([a-z]*)$/.exec(lower);
	if (later) {
		const unit = { "": 1, second: 1, minute: 60, hour: 3600, day: 86400, week: 604800 }[later[2].replace(/s$/, "")];
		return unit === undefined ? wrong() : Math.floor(now.getTime() / 1000 + unsigned(later[1], 2 ** 31 - 1) * unit);
	}
	const at = /^(?:(\d{4})-(\d\d)-(\d\d))?(?:(^|T)(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(v.toUpperCase());
	if (!at || v === "" || (at[1] !== undefined && at[5] !== undefined && at[4] !== "T")) return wrong();
	const [h, m, s] = [Number(at[5] ?? 0), Number(at[6] ?? 0), Number(at[7] ?? 0)];
	if (h > 23 || m > 59 || s > 59) wrong();
	if (at[1] !== undefined) {
		const date = new Date(Number(at[1]), Number(at[2]) - 1, Number(at[3]), h, m, s);
		return date.getMonth() === Number(at[2]) - 1 ? seconds(date) : wrong();
	}
	const date = new Date(now.getFullYear(), now.getMonth(), now.getDate(), h, m, s);
	if (date < now) date.setDate(date.getDate() + 1);
	return seconds(date);
}

const mailTypes = ["BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPENDENCY", "ARRAY_TASKS", "TIME=50%", "TIME=80%", "TIME=90%", "TIME=100%"];

const mailType: Setter = (job, v) => {
	job.mail_type = v.split(",").flatMap((word) => {
		word = word.toUpperCase();
		const time = /^TIME_LIMIT_?(.*)$/.exec(word);
		if (time) word = `TIME=${time[1] || "100"}%`;
		if (word === "NONE") return [];
		if (word === "ALL") return mailTypes.slice(0, 6);
		return mailTypes.includes(word) ? [word] : wrong();
	});
};

const nodes: Setter = (job, v) => {
	const match = /^(\d+)(?:-(\d+))?$/.exec(v) ?? wrong();
	const [low, high] = [Number(match[1]), Number(match[2] ?? match[1])];
	if (low === 0 || high < low || high > 2 ** 31 - 1) wrong();
	Object.assign(job, { nodes: v, minimum_nodes: low, maximum_nodes: high });
};

const signal: Setter = (job, v) => {
	const colon = v.indexOf(":");
	const targets = colon < 0 ? "" : v.slice(0, colon).toUpperCase();
	if (/[^B]/.test(targets)) wrong();
	const [name, seconds] = v.slice(colon + 1).split(/@(.*)/s);
	if (name === "") wrong();
	job.kill_warning_signal = name.toUpperCase().replace(/^SIG/, "");
	if (seconds !== undefined) job.kill_warning_delay = num(unsigned(seconds, 65535));
	if (targets) job.kill_warning_flags = [...targets].map(() => "BATCH_JOB");
};

const chdir: Setter = (job, v) => {
	job.current_working_directory = v.startsWith("/") ? v : `${(job.current_working_directory ?? "").replace(/\/+$/, "")}/${v}`;
};

const openMode: Setter = (job, v) => {
	const mode = { append: "APPEND", a: "APPEND", truncate: "TRUNCATE", t: "TRUNCATE" }[v.toLowerCase()];
	job.open_mode = mode ? [mode] : wrong();
};

const table: [string, string, Option["argument"], Setter][] = [
	["account", "A", "required", text("account")],
	["array", "a", "required", text("array")],
	["begin", "b", "required", (job, v, { now }) => void (job.begin_time = num(beginOf(v, now)))],
	["chdir", "D", "required", chdir],
	["comment", "", "required", text("comment")],
	["constraint", "C", "required", text("constraints")],
	["container", "", "required", text("container")],
	["contiguous", "", "none", fixed("contiguous", true)],
	["core-spec", "S", "required", number("core_specification", 0)],
	["cpus-per-gpu", "", "required", prefixed("cpus_per_tres", "gres/gpu")],
	["cpus-per-task", "c", "required", number("cpus_per_task", 1)],
	["dependency", "d", "required", text("dependency")],
	["distribution", "m", "required", text("distribution")],
	["error", "e", "required", text("standard_error")],
	["exclude", "x", "required", hosts("excluded_nodes")],
	["exclusive", "", "optional", (job, v) => void (job.shared = [v === "" ? "none" : ["user", "mcs", "topo"].includes(v) ? v : wrong()])],
	["export", "", "required", (_, v, context) => void (context.export = v)],
	["gpus", "G", "required", prefixed("tres_per_job", "gres/gpu")],
	["gpus-per-node", "", "required", prefixed("tres_per_node", "gres/gpu")],
	["gpus-per-socket", "", "required", prefixed("tres_per_socket", "gres/gpu")],
	["gpus-per-task", "", "required", prefixed("tres_per_task", "gres/gpu")],
	["gres", "", "required", (job, v) => void (job.tres_per_node = v.split(",").map((part) => (part.startsWith("gres/") ? part : `gres/${part}`)).join(","))],
	["hold", "H", "none", fixed("hold", true)],
	["input", "i", "required", text("standard_input")],
	["job-name", "J", "required", text("name")],
	["licenses", "L", "required", text("licenses")],
	["mail-type", "", "required", mailType],
	["mail-user", "", "required", text("mail_user")],
	["mem", "", "required", memory("memory_per_node", "memory_per_cpu")],
	["mem-per-cpu", "", "required", memory("memory_per_cpu", "memory_per_node")],
	["mem-per-gpu", "", "required", (job, v) => void (job.memory_per_tres = `gres/gpu:${memoryOf(v)}`)],
	["mincpus", "", "required", number("minimum_cpus_per_node", 1)],
	["network", "", "required", text("network")],
	["nice", "", "optional", (job, v) => void (job.nice = v === "" ? 100 : integer(v, -(2 ** 31), 2 ** 31 - 1))],
	["no-kill", "k", "none", fixed("kill_on_node_fail", false)],
	["no-requeue", "", "none", fixed("requeue", false)],
	["nodelist", "w", "required", hosts("required_nodes")],
	["nodes", "N", "required", nodes],
	["ntasks", "n", "required", number("tasks", 1)],
	["ntasks-per-core", "", "required", number("tasks_per_core", 1)],
	["ntasks-per-node", "", "required", number("tasks_per_node", 1)],
	["ntasks-per-socket", "", "required", number("tasks_per_socket", 1)],
	["open-mode", "", "required", openMode],
	["output", "o", "required", text("standard_output")],
	["overcommit", "O", "none", fixed("overcommit", true)],
	["oversubscribe", "s", "none", fixed("shared", ["oversubscribe"])],
	["partition", "p", "required", text("partition")],
	["prefer", "", "required", text("prefer")],
	["priority", "", "required", (job, v) => void (job.priority = num(unsigned(v, 2 ** 32 - 1)))],
	["qos", "q", "required", text("qos")],
	["reboot", "", "none", fixed("reboot", true)],
	["requeue", "", "none", fixed("requeue", true)],
	["reservation", "", "required", text("reservation")],
	["signal", "", "required", signal],
	["sockets-per-node", "", "required", number("sockets_per_node", 1)],
	["threads-per-core", "", "required", number("threads_per_core", 1)],
	["time", "t", "required", limit("time_limit")],
	["time-min", "", "required", limit("time_minimum")],
	["tmp", "", "required", (job, v) => {
		const n = memoryOf(v);
		job.temporary_disk_per_node = n < 2 ** 31 ? n : wrong();
	}],
	["wckey", "", "required", text("wckey")],
];
const options: Option[] = table.map(([name, letter, argument, set]) => ({ name, letter, argument, set }));
const byName = new Map(options.map((o) => [o.name, o]));
const byLetter = new Map(options.filter((o) => o.letter).map((o) => [o.letter, o]));

/** Splits a line into words like a shell. A # outside of a word begins a comment. */
function split(line: string): string[] {
	const list: string[] = [];
	let [word, inWord, quote, escaped] = ["", false, "", false];
	for (const c of line) {
		if (escaped) [word, escaped] = [word + c, false];
		else if (c === "\\" && quote !== "'") [inWord, escaped] = [true, true];
		else if (quote !== "" && c === quote) quote = "";
		else if (quote !== "") word += c;
		else if (c === "'" || c === '"') [inWord, quote] = [true, c];
		else if (c === " " || c === "\t") {
			if (inWord) list.push(word);
			[word, inWord] = ["", false];
		} else if (c === "#" && !inWord) return list;
		else [word, inWord] = [word + c, true];
	}
	if (quote !== "" || escaped) throw new Invalid("quote", line.trim());
	if (inWord) list.push(word);
	return list;
}

/** Applies the options in a list of words. */
function apply(words: string[], job: Fields, context: Context): void {
	const set = (option: Option, name: string, value: string, given: boolean) => {
		if (option.argument === "none" && given) throw new Invalid("none", name);
		if (option.argument === "required" && value === "") throw new Invalid("missing", name);
		try {
			option.set(job, value, context);
		} catch (error) {
			throw error instanceof Invalid ? new Invalid(error.reason, `${name}=${value}`) : error;
		}
	};
	const rest = [...words];
	for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
		if (word === "hetjob") throw new Invalid("unknown", word);
		if (word.length < 2 || word[0] !== "-" || word === "--") throw new Invalid("argument", word);
		if (word[1] === "-") {
			const equals = word.indexOf("=");
			const name = equals < 0 ? word : word.slice(0, equals);
			const option = byName.get(name.slice(2));
			if (!option) throw new Invalid("unknown", name);
			let value = equals < 0 ? "" : word.slice(equals + 1);
			if (option.argument === "required" && equals < 0) {
				if (rest.length === 0) throw new Invalid("missing", name);
				value = rest.shift()!;
			}
			set(option, name, value, equals >= 0);
			continue;
		}
		for (let letters = word.slice(1); letters !== ""; ) {
			const name = `-${letters[0]}`;
			const option = byLetter.get(letters[0]);
			if (!option) throw new Invalid("unknown", name);
			letters = letters.slice(1);
			if (option.argument === "none") {
				set(option, name, "", false);
				continue;
			}
			let value = letters.replace(/^=/, "");
			if (letters === "" && option.argument === "required") {
				if (rest.length === 0) throw new Invalid("missing", name);
				value = rest.shift()!;
			}
			set(option, name, value, true);
			break;
		}
	}
}

/** Returns the variables that --export assigns. The page has no environment, so names without a value give nothing. */
function exported(value: string | undefined): string[] {
	if (value === undefined) return [];
	const list = value.split(",");
	return list.flatMap((word) => {
		const upper = word.toUpperCase();
		if (upper === "ALL" || (upper === "NONE" && list.length === 1)) return [];
		if (word === "" || word.startsWith("=") || upper === "NONE" || /^(SCHED|SLURM)_JWT=/.test(word)) throw new Invalid("export", `--export=${value}`);
		return word.includes("=") ? [word] : [];
	});
}

/**
 * Reads the #SBATCH lines before the first command of a script. Lines that are
 * not understood set nothing. The argument base has the fields that a line may
 * build on, such as the working directory.
 */
export function parseScript(script: string, base: Fields = {}, now = new Date()): Directives {
	const result: Directives = { fields: {}, understood: [], problems: [], environment: [] };
	const context: Context = { now };
	let job: Fields = { ...base };
	let line = 0;
	for (const content of script.split("\n")) {
		line++;
		if (/^#SBATCH(?:[ \t]|$)/.test(content)) {
			const next = { ...job };
			const attempt: Context = { ...context };
			try {
				apply(split(content.slice("#SBATCH".length)), next, attempt);
				result.environment = exported(attempt.export);
				const changed = Object.keys(next).filter((name) => next[name] !== job[name]);
				if (attempt.export !== context.export) changed.push("environment");
				result.understood.push({ line, text: content, fields: changed });
				job = next;
				context.export = attempt.export;
			} catch (error) {
				if (!(error instanceof Invalid)) throw error;
				result.problems.push({ line, text: content, reason: error.reason, word: error.word });
			}
			continue;
		}
		const blank = content.trim();
		if (blank !== "" && blank[0] !== "#") break;
	}
	if (job.tasks !== undefined || job.cpus_per_task !== undefined) job.minimum_cpus = Math.max(job.tasks ?? 1, 1) * Math.max(job.cpus_per_task ?? 1, 1);
	result.fields = Object.fromEntries(Object.entries(job).filter(([name, v]) => base[name] !== v));
	return result;
}
