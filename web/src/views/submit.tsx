// Submission of a script. The page translates #SBATCH lines to fields, shows the
// request as a curl command, and then follows the job.
import { useEffect, useMemo, useState } from "preact/hooks";
import { useAnswer } from "../core/answer";
import { visible } from "../core/format";
import { href, useList } from "../core/hooks";
import { jobs, partitions } from "../core/lists";
import { call, Failure, onEnd, path, session, tokenHeader } from "../core/session";
import { type Fields, parseOption, parseScript, variablesOf } from "../core/sbatch";
import { words } from "../words";
import { Card, Problem, State, Text, Time } from "../ui/basics";

const w = words.submitView;
const PATH = "PATH=/usr/local/bin:/usr/bin:/bin";
const example = "#!/bin/sh\n#SBATCH --job-name=hello\n#SBATCH --time=5\n\necho \"Hello from $(hostname)\"\nsleep 30\n";

/** When and where a job would start. */
interface Estimate {
	start_time: { set: boolean; number: number };
	nodes: string;
	partition: string;
	cpus: number;
	preempted_jobs: number[];
}

/** What the user has written, kept while other views are shown. */
let draft: Record<string, string> = { script: example };
let author = ""; // of the draft, which another user must not see

/** Messages of the site's policy, and warnings, about the last submission. The view of the job shows them. */
export let notes: { id: string; texts: string[] } = { id: "", texts: [] };
onEnd(() => (notes = { id: "", texts: [] }));

/** The fields of the form, and the fields of the request that they set. They have precedence over the script. */
const inputs: { id: string; type: "text" | "number"; set: (job: Fields, value: string) => void }[] = [
	{ id: "name", type: "text", set: (job, v) => (job.name = v) },
	{ id: "account", type: "text", set: (job, v) => (job.account = v) },
	{ id: "time", type: "text", set: (job, v) => Object.assign(job, parseOption("time", v)) },
	{ id: "tasks", type: "number", set: (job, v) => Object.assign(job, { tasks: Number(v) }) },
	{ id: "cpus", type: "number", set: (job, v) => Object.assign(job, { cpus_per_task: Number(v) }) },
	{ id: "memory", type: "text", set: (job, v) => Object.assign(job, parseOption("mem", v)) },
	{ id: "gpus", type: "text", set: (job, v) => Object.assign(job, parseOption("gpus", v)) },
];

export function Submit() {
	if (author !== session.user) [author, draft] = [session.user, { script: example }];
	const [values, setValues] = useState(draft);
	const [busy, setBusy] = useState(false);
	const [problem, setProblem] = useState<Failure>();
	const [estimate, setEstimate] = useState<Estimate>();
	const partitionList = useList(partitions);
	useList(jobs);
	const change = (id: string, value: string) => {
		setValues((draft = { ...draft, [id]: value }));
		setEstimate(undefined);
	};
	const get = (id: string) => values[id] ?? "";

	// The directory of the user's last job is where the next one probably starts.
	const last = useMemo(() => Math.max(0, ...[...jobs.items.values()].filter((j) => j.user === session.user).map((j) => j.id)), [jobs.revision]);
	const lastJob = useAnswer<{ jobs: any[] }>({ daemon: "controller", operation: values.directory === undefined && last ? `job/${last}?fields=current_working_directory` : "", interval: 3600 });
	const used = lastJob.data?.jobs[0]?.current_working_directory;
	useEffect(() => {
		if (used && values.directory === undefined) change("directory", used);
	}, [used, values.directory]);

	const directory = get("directory");
	const script = get("script");
	const read = useMemo(() => parseScript(script, { current_working_directory: directory }), [script, directory]);
	const job: Fields = { current_working_directory: directory, ...read.fields };
	const invalid: string[] = [];
	for (const input of inputs) {
		const v = get(input.id).trim();
		if (v === "") continue;
		const next: Fields = {};
		input.set(next, v);
		if (Object.keys(next).length === 0) invalid.push(input.id);
		if (next.memory_per_node) delete job.memory_per_cpu;
		Object.assign(job, next);
	}
	if (get("partition")) job.partition = get("partition");
	if (job.tasks !== undefined || job.cpus_per_task !== undefined) job.minimum_cpus = (job.tasks ?? 1) * (job.cpus_per_task ?? 1);
	job.name ??= "job";
	job.environment = [...new Map([PATH, ...read.environment, ...(directory ? [`SLURM_SUBMIT_DIR=${directory}`] : []), ...variablesOf(job)].map((v) => [v.slice(0, v.indexOf("=")), v])).values()].sort(); // of two values, the later one
	job.script = script;
	const body = { job };

	const missing = [
		...read.problems.slice(0, 1).map((p) => w.needs.problem(p.line, `${w.reasons[p.reason]} ${visible(p.word, 80)}`)), !script.startsWith("#!") && w.needs.interpreter, script.includes("\r\n") && w.needs.lines, script.includes("\0") && w.needs.nul,
		!String(job.current_working_directory).startsWith("/") && w.needs.directory, ...invalid.map((id) => w.needs.valid(w.fields[id])),
	].filter(Boolean) as string[];

	const untouched = Object.keys(values).every((id) => id === "script" || id === "directory") && script === example && directory === (used ?? "");

	const submit = async () => {
		setBusy(true);
		setProblem(undefined);
		try {
			const answer = await send(body);
			notes = { id: String(answer.job_id), texts: [answer.job_submit_user_msg, ...answer.warnings.map((warning: any) => warning.description)].filter(Boolean) };
			location.hash = href(["job", String(answer.job_id)], { submitted: "yes" });
		} catch (error) {
			setProblem(error as Failure);
			setBusy(false);
		}
	};
	const check = async () => {
		setBusy(true);
		setProblem(undefined);
		setEstimate(undefined);
		try {
			setEstimate((await call<{ estimate: Estimate }>("controller", "job/submit?dry_run=true", { method: "POST", body })).estimate);
		} catch (error) {
			setProblem(error as Failure);
		}
		setBusy(false);
	};
	const drop = async (event: DragEvent) => {
		const file = event.dataTransfer?.files[0];
		if (!file) return;
		event.preventDefault();
		if (file.size < 4 << 20) change("script", await file.text());
	};
	const known = useMemo(() => {
		const own = [...jobs.items.values()].filter((j) => j.user === session.user);
		return [...new Set(own.map((j) => j.account).filter(Boolean))];
	}, [jobs.revision]);

	return (
		<div class="page">
			<header class="viewhead"><h1>{words.nav.submit}</h1></header>
			<form class="submit" onSubmit={(e) => { e.preventDefault(); if (missing.length === 0 && !busy) void submit(); }} autocomplete="off">
				<div class="cards">
					<Card title={w.script} wide note={<label class="filebutton">{w.open}<input type="file" class="hidden" onChange={async (e) => { const f = e.currentTarget.files?.[0]; if (f && f.size < 4 << 20) change("script", await f.text()); }} /></label>}>
						<textarea class="source" aria-label={w.script} rows={14} spellcheck={false} value={script} onInput={(e) => change("script", e.currentTarget.value)} onDrop={drop} onDragOver={(e) => e.preventDefault()} />
						{(read.understood.length > 0 || read.problems.length > 0) && (
							<ul class="directives" aria-label={w.directives}>
								{read.understood.map((d) => <li key={d.line}><State kind="done">{w.line(d.line)}</State> <code><Text limit={160}>{d.text}</Text></code> <span class="muted">{d.fields.join(", ")}</span></li>)}
								{read.problems.map((d) => <li key={d.line} class="error"><State kind="failed">{w.line(d.line)}</State> <code><Text limit={160}>{d.text}</Text></code> <span>{w.reasons[d.reason]} <Text limit={80}>{d.word}</Text></span></li>)}
							</ul>
						)}
						{read.problems.length > 0 && <p class="muted">{w.problemNote}</p>}
					</Card>
					<Card title={w.options} note={w.optionsNote}>
						<div class="fields">
							<label class="field whole">{w.fields.directory} <input type="text" value={directory} required={!job.current_working_directory} placeholder={session.user ? `/home/${session.user}` : "/"} spellcheck={false} onInput={(e) => change("directory", e.currentTarget.value)} /></label>
							<label class="field">{w.fields.partition}
								<select value={get("partition")} onChange={(e) => change("partition", e.currentTarget.value)}>
									<option value="">{read.fields.partition ? w.fromScript : w.standard}</option>
									{[...partitionList.items.keys()].map((name) => <option key={name} value={name}>{visible(String(name))}</option>)}
								</select>
							</label>
							{inputs.map(({ id, type }) => (
								<label key={id} class="field">{w.fields[id]}
									<input type={type} min={1} value={get(id)} list={id === "account" ? "accounts" : undefined} placeholder={w.examples[id]} spellcheck={false} aria-invalid={invalid.includes(id)} onInput={(e) => change(id, e.currentTarget.value)} />
								</label>
							))}
							<datalist id="accounts">{known.map((name) => <option key={name} value={name} />)}</datalist>
						</div>
					</Card>
					<Card title={w.request} note={<CopyButton text={curl(body)} />}>
						<pre class="source" tabIndex={0}>{curl(body)}</pre>
						<p class="muted">{session.byToken ? w.tokenNote : w.noTokenNote}</p>
					</Card>
				</div>
				{problem && <Problem failure={problem} />}
				{estimate && <p class="banner" role="status">
					{w.notSubmitted} {estimate.start_time.set ? <>{w.wouldStart} <Time at={estimate.start_time.number} />: </> : `${w.noEstimate} `}
					<Text limit={500}>{w.where(estimate.cpus, estimate.nodes, estimate.partition)}</Text>.
					{estimate.preempted_jobs.length > 0 && ` ${w.makeRoom(estimate.preempted_jobs.join(", "))}`}
				</p>}
				<footer class="formfoot">
					<button type="submit" class="primary" disabled={missing.length > 0} aria-disabled={busy}>{busy ? w.busy : w.button}</button>
					<button type="button" disabled={missing.length > 0} aria-disabled={busy} onClick={() => busy || void check()}>{w.check}</button>
					<span class={untouched ? "muted" : "error"} role="status">{missing[0]}</span>
				</footer>
			</form>
		</div>
	);
}

/**
 * Sends the submission with a key, so that a repetition after a lost answer
 * submits no second job, or without one if the gateway keeps no keys.
 */
async function send(body: unknown): Promise<any> {
	const key = [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
	for (let attempt = 0; ; attempt++) {
		try {
			return await call("controller", "job/submit", { method: "POST", body, headers: { "Idempotency-Key": key } });
		} catch (error) {
			if (!(error instanceof Failure)) throw error;
			if (error.status === 501 && error.number === 0) return await call("controller", "job/submit", { method: "POST", body });
			if (attempt >= 3 || ![0, 408, 503, 504].includes(error.status) && error.code !== "in_progress") throw error;
			await new Promise((resolve) => window.setTimeout(resolve, Math.max(error.retryAfter * 1000, 1000 * 2 ** attempt)));
		}
	}
}

/** Returns a command that sends the same request. It reads the token from a file, because other users can read command lines. */
function curl(body: unknown): string {
	const data = JSON.stringify(body, null, 2).replace(/'/g, "'\\''");
	const address = new URL(path("controller", "job/submit"), location.href).href;
	const header = session.byToken ? ` -H @token` : "";
	const prepare = session.byToken ? `(umask 077; printf '${tokenHeader()}: %s\\n' "$${tokenHeader().slice(2, 7)}_JWT" >token)\n` : "";
	return `${session.byToken ? prepare : ""}curl -sS${header} -H 'Content-Type: application/json' \\\n  -d '${data}' \\\n  ${address}`;
}

function CopyButton({ text }: { text: string }) {
	const [copied, setCopied] = useState(false);
	if (!navigator.clipboard) return null; // only on https and localhost
	return (
		<button type="button" class="small" onClick={async () => {
			await navigator.clipboard.writeText(text);
			setCopied(true);
			window.setTimeout(() => setCopied(false), 2000);
		}}>{copied ? w.copied : w.copy}</button>
	);
}
