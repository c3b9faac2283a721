// One job: why it waits, its times, what it asked for and used, its files, its
// tasks or components, and what accounting has recorded.
import { useMemo, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { useAnswer } from "../core/answer";
import { offersJob, target, wasRefused, type JobAction } from "../core/changes";
import fields from "../core/fields.json";
import { count, duration, memory, percent, visible, visibleLines } from "../core/format";
import { href, useList, useNow } from "../core/hooks";
import { jobs } from "../core/lists";
import { readsOutput } from "../core/output";
import { explain } from "../core/reasons";
import { active, type Job, label, ran, running, tasksIn, toJob, value } from "../core/records";
import { parseTRES } from "../core/resources";
import { jobKind } from "../core/states";
import { session } from "../core/session";
import { words } from "../words";
import { Card, Controls, Empty, Facts, Loading, Problem, State, Text, Time } from "../ui/basics";
import { ConfirmJobs } from "../ui/dialog";
import { type Column, Table } from "../ui/table";
import { jobColumns } from "./jobs";
import { OutputCard } from "./output";
import { notes } from "./submit";

const w = words.jobView;

export function JobView({ id, submitted }: { id: string; submitted: boolean }) {
	const list = useList(jobs);
	const [action, setAction] = useState<JobAction>();
	const known = useMemo(() => [...list.items.values()].find((job) => job.label === id || String(job.id) === id), [list.revision, id]);
	// The controller answers with a record for each task or component: the page shows the one with this label.
	const operation = `job/${encodeURIComponent(id.replace(/[_+].*/, ""))}?explain=true&fields=${fields.job.join(",")}`;
	const current = useAnswer<{ jobs: any[] }>({ daemon: "controller", operation, interval: 15, sign: known });
	// Once a task of 12_[4-7] has started, the tasks that wait have another label.
	const waiting = (r: any) => id.includes("_[") && !!r.array_task_string;
	const raw = current.data && (current.data.jobs.find((r) => label(r) === id) ?? current.data.jobs.find((r) => String(r.job_id) === id || waiting(r)) ?? current.data.jobs[current.data.jobs.length - 1]);
	const job = raw ? toJob(raw) : known;
	const gone = current.failure?.status === 404;
	const over = gone || (!!job && !active(job) && !job.flags.includes("COMPLETING"));
	const recorded = useAnswer<{ jobs: any[] }>({
		daemon: "accounting", operation: session.accounting && over ? `jobs/?step=${encodeURIComponent(target(id))}&show_batch_script=true&fields=${fields.recorded.join(",")}` : "", interval: 30,
	});
	// The number of an array is also that of one of its tasks; a job that was requeued has several records, the last of which counts.
	const records = recorded.data?.jobs;
	const record = records?.findLast((r) => String(r.job_id) === String(job?.id ?? id)) ?? records?.[records.length - 1];
	const family = useMemo(() => {
		const of = job?.array || job?.het || 0;
		return of ? [...list.items.values()].filter((other) => other.array === of || other.het === of || other.id === of) : [];
	}, [list.revision, job?.array, job?.het]);

	if (!job && !record) {
		const failure = gone ? recorded.failure : current.failure;
		return (
			<div class="page">
				<header class="viewhead"><h1>{words.job} <Text>{id}</Text></h1></header>
				{gone && (!session.accounting || recorded.data) ? <Empty title={w.unknown(visible(id))}><a class="button" href="#/jobs">{words.nav.jobs}</a></Empty>
					: failure ? <Problem failure={failure} retry={() => { current.refresh(); recorded.refresh(); }} /> : <Loading />}
			</div>
		);
	}
	const head = job ?? fromRecord(record);
	// The record of an array's waiting tasks has the number for "not set" in place of a task's.
	const file = (name: string): string | undefined => (raw ?? record)?.[name]?.replaceAll("4294967294", "%a");
	const offered = job && !gone ? (["cancel", "hold", "release", "requeue"] as JobAction[]).filter((name) => offersJob(name, job)) : [];
	return (
		<div class="page">
			<nav class="crumbs" aria-label={words.crumbs}><a href="#/jobs">{words.nav.jobs}</a> / {head.label}</nav>
			<header class="viewhead">
				<div>
					<h1><Text limit={200}>{head.name || w.noName}</Text></h1>
					<p class="sub"><State kind={head.kind}>{words.jobState(head.held ? "HELD" : head.state)}</State>{head.flags.map((flag) => <span class="tag" key={flag}>{flag}</span>)} <span>{words.job} {head.label}</span> <span><Text>{head.user}</Text>{head.account && <> · <Text>{head.account}</Text></>}</span></p>
				</div>
				<Controls class="actions">
					{offered.map((name) => <button key={name} type="button" class={name === "cancel" ? "danger" : ""} onClick={() => setAction(name)}>{words.jobActions[name].button}</button>)}
					{job && active(job) && job.user !== session.user && wasRefused("jobs of others") && <span class="muted">{words.refusedJobs}</span>}
				</Controls>
			</header>
			{submitted && <p class="banner" role="status">{over ? w.submittedEnded : w.submitted}</p>}
			{submitted && notes.id === id && notes.texts.map((text) => <div class="banner" role="status" key={text}>{long(text)}</div>)}
			{current.failure && !gone && <Problem failure={current.failure} retry={current.refresh} />}
			{head.state === "PENDING" && <Why job={head} raw={raw} />}
			<div class="cards flow">
				<Card title={w.times} wide><Timeline job={head} raw={raw} record={record} /></Card>
				{readsOutput() && head.state !== "PENDING" && head.tasks === 1 && <OutputCard key={raw?.restart_cnt ?? 0} label={target(head.label)} over={over} separate={!!file("stderr_expanded") && file("stderr_expanded") !== file("stdout_expanded")} />}
				<Card title={w.resources}><Resources job={head} raw={raw} record={record} /></Card>
				<Card title={w.result}>
					<Facts facts={[
						[w.exit, head.state === "PENDING" || running(head) ? "" : exit((raw ?? record)?.exit_code)],
						[w.derivedExit, active(head) ? "" : derived((raw ?? record)?.derived_exit_code, (raw ?? record)?.exit_code)],
						[w.why, raw && head.reason && head.state !== "PENDING" && !filesFailed(raw.exit_code) ? <Text>{head.reason}</Text> : ""],
						[w.waitingTasks, head.tasks > 1 ? count(head.tasks) : ""],
						[w.restarts, raw?.restart_cnt ? count(raw.restart_cnt) : ""],
						[w.failedNode, raw?.failed_node && <Text>{raw.failed_node}</Text>],
						[words.nodes, head.nodes ? <Hosts hosts={head.nodes} /> : ""],
						[w.batchHost, raw?.batch_host && raw.batch_host !== head.nodes && <Hosts hosts={raw.batch_host} />],
					]} />
					{active(head) && !head.nodes && <p class="muted">{w.noResult}</p>}
				</Card>
				<Card title={w.files}>
					<Facts facts={[
						[w.output, path(file("stdout_expanded"))],
						[w.errors, path(different(file("stderr_expanded"), file("stdout_expanded")))],
						[w.input, path(different(file("stdin_expanded"), "/dev/null"))],
						[w.directory, path(raw?.current_working_directory ?? record?.working_directory)],
						[w.command, path(raw?.command)],
						[w.submitLine, path(record?.submit_line)],
					]} />
				</Card>
				<Card title={w.details}>
					<Facts facts={[
						[words.partition, <Text>{head.partition}</Text>], [words.columns.qos, head.qos && <Text>{head.qos}</Text>],
						[words.columns.priority, raw && count(raw["priority"].number)], [w.nice, raw?.nice ? count(raw.nice) : ""],
						[w.reservation, raw?.resv_name && <Text>{raw.resv_name}</Text>], [w.features, raw?.features && <Text>{raw.features}</Text>],
						[w.licenses, raw?.licenses && <Text>{raw.licenses}</Text>], [words.columns.dependency, raw?.dependency && <Text limit={1000}>{raw.dependency}</Text>],
						[w.requiredNodes, raw?.required_nodes && <Text limit={1000}>{raw.required_nodes}</Text>], [w.excludedNodes, raw?.excluded_nodes && <Text limit={1000}>{raw.excluded_nodes}</Text>],
						[w.wckey, raw?.wckey && <Text>{raw.wckey}</Text>], [w.container, path(raw?.container)],
						[words.columns.comment, long(raw?.comment ?? record?.comment?.job)], [w.adminComment, long(raw?.admin_comment ?? record?.comment?.administrator)], [w.systemComment, long(raw?.system_comment ?? record?.comment?.system)],
					]} />
				</Card>
				{family.length > 1 && (
					<Card title={job!.het ? w.components : w.tasks} wide note={count(tasksIn(family))}>
						<Table caption={w.tasks} columns={familyColumns} rows={family} id={(j) => j.id} link={(j) => href(["job", j.label])} order={{ id: "id", down: false }} empty="" />
					</Card>
				)}
				{record?.steps?.length > 0 && <Card title={w.steps} wide note={w.recorded}><Steps record={record} /></Card>}
				{record?.script && <Card title={w.script} wide><pre class="source" tabIndex={0}>{visibleLines(record.script)}</pre></Card>}
				{over && session.accounting && recorded.failure && <Card title={w.accounting} wide><Problem failure={recorded.failure} retry={recorded.refresh} /></Card>}
			</div>
			{action && job && <ConfirmJobs action={action} jobs={[job]} onClose={() => { setAction(undefined); current.refresh(); jobs.refresh(); }} />}
		</div>
	);
}

const familyColumns: Column<Job>[] = jobColumns.filter((column) => ["id", "name", "state", "cpus", "nodes", "elapsed", "why", "end"].includes(column.id));

/** Makes a job of accounting's record, for a job that the controller no longer has. */
function fromRecord(r: any): Job {
	const [state = "", ...flags] = r.state.current as string[];
	const named = { ...r, array_job_id: { number: r.array?.job_id ?? 0 }, array_task_id: r.array?.task_id, het_job_id: { number: r.het?.job_id ?? 0 }, het_job_offset: r.het?.job_offset };
	return {
		id: r.job_id, label: label(named), name: r.name, user: r.user, account: r.account, partition: r.partition, qos: r.qos, state, flags, kind: jobKind(state, flags),
		reason: r.state.reason === "None" ? "" : r.state.reason, why: "", tasks: 1, held: false, array: r.array?.job_id ?? 0, het: r.het?.job_id ?? 0,
		submitted: r.time.submission, started: r.time.start, ended: r.time.end, suspended: r.time.end, since: r.time.start + r.time.suspended, limit: value(r.time.limit) === undefined ? undefined : value(r.time.limit)! * 60,
		cpus: r.required.CPUs, nodeCount: r.allocation_nodes, nodes: r.nodes, gpus: 0, more: {},
	};
}

/** Why a job waits: Slurm's word, what it means, and when the job may start. */
function Why({ job, raw }: { job: Job; raw: any }) {
	const now = useNow(30);
	const explained = raw?.explanation ? [raw.explanation.why, raw.explanation.change] : explain(job.reason);
	return (
		<div class="banner why">
			<p><strong>{w.waits}</strong> {job.reason ? <><code><Text>{job.reason}</Text></code> <Text limit={2000}>{explained.join(" ")}</Text></> : w.noReason}</p>
			{raw?.state_description && <p><Text limit={1000}>{raw.state_description}</Text></p>}
			<p class="muted">{job.started > now ? <>{w.expected} <Time at={job.started} /> ({w.inTime(duration(job.started - now))})</> : w.noEstimate} {raw?.scheduled_nodes && <>{w.on} <Text>{raw.scheduled_nodes}</Text></>}</p>
		</div>
	);
}

/** The times of a job as a line: how long it waited, how long it has run, and what is left. */
function Timeline({ job, raw, record }: { job: Job; raw: any; record: any }) {
	const now = useNow(1);
	const began = job.state !== "PENDING" && job.started > 0 && job.started <= now + 60;
	const end = active(job) ? now : job.ended || now;
	const waited = Math.max(0, (began ? job.started : end) - job.submitted);
	const used = began ? ran(job, now) : 0;
	const left = began && running(job) && job.limit !== undefined && job.limit !== Infinity ? Math.max(0, job.limit - used) : 0;
	const whole = waited + used + left || 1;
	const width = (n: number) => ({ width: `${(100 * n) / whole}%` });
	const eligible = raw?.eligible_time?.number ?? record?.time.eligible ?? 0;
	const suspended = record?.time.suspended ?? 0;
	return (
		<>
			<div class="timeline" aria-hidden="true">
				<span class="waited" style={width(waited)} /><span class={`ran ${job.kind}`} style={width(used)} /><span class="left" style={width(left)} />
			</div>
			<ul class="timekeys">
				<li><span class="swatch waited" aria-hidden="true" />{w.waited} <b>{duration(waited)}</b></li>
				{began && <li><span class={`swatch ran ${job.kind}`} aria-hidden="true" />{w.ran} <b>{duration(used)}</b></li>}
				{running(job) && <li><span class="swatch left" aria-hidden="true" />{w.left} <b>{job.limit === Infinity ? words.unlimited : duration(left)}</b></li>}
			</ul>
			<Facts facts={[
				[words.columns.submitted, <Time at={job.submitted} />],
				[w.eligible, eligible && eligible !== job.submitted ? <Time at={eligible} /> : ""],
				[words.columns.start, began ? <Time at={job.started} /> : ""],
				[words.columns.end, active(job) ? "" : <Time at={job.ended} />],
				[w.latestEnd, running(job) && job.limit !== Infinity && job.ended ? <Time at={job.ended} /> : ""],
				[words.columns.limit, duration(job.limit)],
				[w.suspended, suspended ? duration(suspended) : ""],
				[w.deadline, raw?.deadline?.number ? <Time at={raw.deadline.number} /> : ""],
			]} />
		</>
	);
}

/** What a job asked for and got, and what it used according to accounting. */
function Resources({ job, raw, record }: { job: Job; raw: any; record: any }) {
	const asked = raw ? parseTRES(raw.tres_req_str) : listed(record?.tres?.requested);
	const got = raw ? parseTRES(raw.tres_alloc_str) : listed(record?.tres?.allocated);
	const used = new Map<string, string>();
	if (record) {
		const cpu = record.time.total.seconds + record.time.total.microseconds / 1e6;
		const available = record.time.elapsed * (got.get("cpu") ?? job.cpus);
		if (cpu > 0 && available > 0) used.set("cpu", w.cpuUse(percent(cpu, available), duration(cpu)));
		let peak = 0;
		for (const step of record.steps ?? []) for (const t of step.tres?.requested?.max ?? []) if (t.type === "mem") peak = Math.max(peak, t.count);
		if (peak > 0) used.set("mem", w.memoryPeak(memory(peak / 1024 ** 2)));
	}
	const names = [...new Set([...asked.keys(), ...got.keys(), ...used.keys()])].filter((name) => name !== "billing");
	if (names.length === 0) return <p class="muted">{w.noResources}</p>;
	const write = (name: string, n: number | undefined) => (n === undefined ? "–" : name === "mem" ? memory(n) : count(n));
	return (
		<>
			<table class="plain">
				<thead><tr><th scope="col">{w.resource}</th><th scope="col" class="number">{w.requested}</th><th scope="col" class="number">{w.allocated}</th>{used.size > 0 && <th scope="col">{w.used}</th>}</tr></thead>
				<tbody>{names.map((name) => <tr key={name}><th scope="row"><Text>{words.tres[name] ?? name}</Text></th><td class="number">{write(name, asked.get(name))}</td><td class="number">{write(name, got.get(name))}</td>{used.size > 0 && <td>{used.get(name) ?? ""}</td>}</tr>)}</tbody>
			</table>
			<Facts facts={[[w.gresDetail, raw?.gres_detail?.length ? <Text limit={1000}>{raw.gres_detail.join(", ")}</Text> : ""]]} />
		</>
	);
}

function listed(list: any[] | undefined): Map<string, number> {
	return new Map((list ?? []).filter((t) => t.count >= 0).map((t) => [t.name ? `${t.type}/${t.name}` : t.type, t.count])); // negative if not set
}

function Steps({ record }: { record: any }) {
	return (
		<div class="scroll" tabIndex={0}><table class="plain">
			<thead><tr><th scope="col">{w.step}</th><th scope="col">{words.columns.name}</th><th scope="col">{words.columns.state}</th><th scope="col">{words.columns.start}</th><th scope="col" class="number">{words.columns.elapsed}</th><th scope="col" class="number">{w.cpuTime}</th><th scope="col" class="number">{w.peak}</th><th scope="col">{w.exit}</th></tr></thead>
			<tbody>{record.steps.map((step: any) => {
				const [state = "", ...flags] = [step.state].flat();
				const peak = (step.tres?.requested?.max ?? []).find((t: any) => t.type === "mem")?.count;
				return (
					<tr key={JSON.stringify(step.step?.id)}>
						<th scope="row"><Text>{typeof step.step?.id === "object" ? String(step.step.id.step_id ?? "") : String(step.step?.id ?? "")}</Text></th><td><Text limit={80}>{step.step?.name ?? ""}</Text></td>
						<td><State kind={jobKind(state, flags)}>{words.jobState(state)}</State></td><td><Time at={value(step.time.start) ?? 0} /></td>
						<td class="number">{duration(step.time.elapsed)}</td><td class="number">{duration(step.time.total.seconds)}</td><td class="number">{peak ? memory(peak / 1024 ** 2) : "–"}</td><td>{exit(step.exit_code)}</td>
					</tr>
				);
			})}</tbody>
		</table></div>
	);
}

export function Hosts({ hosts }: { hosts: string }) {
	return /[[,]/.test(hosts) ? <a href={href(["nodes"], { q: hosts.split(/[[,]/)[0] })}><Text limit={500}>{hosts}</Text></a> : <a href={href(["node", hosts])}><Text>{hosts}</Text></a>;
}

/** Slurm reports this signal if it can't open a job's files, and a reason such as RaisedSignal:53(Real-time_signal_19). */
const outputSignal = 53;
const filesFailed = (code: any): boolean => code?.signal?.id?.set && code.signal.id.number === outputSignal && !code.return_code?.number;

function exit(code: any): string {
	if (!code) return "";
	if (filesFailed(code)) return w.filesFailed;
	if (code.signal?.id?.set && code.signal.id.number) return w.signal(code.signal.name || String(code.signal.id.number));
	return code.return_code?.set ? String(code.return_code.number) : "";
}

const derived = (code: any, own: any) => (exit(code) === exit(own) || exit(code) === "0" ? "" : exit(code));
const path = (text: string | undefined): ComponentChildren => (text ? <code class="path"><Text limit={5000}>{text}</Text></code> : "");
const different = (text: string | undefined, from: string | undefined) => (text === from ? "" : text);
const long = (text: string | undefined): ComponentChildren => (text ? <div class="longtext" tabIndex={text.length > 300 ? 0 : undefined}>{visibleLines(text)}</div> : "");
