// The list of jobs: the user's own first, with filters, a search, and changes of
// the selected jobs.
import { useEffect, useMemo, useState } from "preact/hooks";
import { offersJob, type JobAction } from "../core/changes";
import { now } from "../core/clock";
import { count, duration, visible } from "../core/format";
import fields from "../core/fields.json";
import { href, type Route, setQuery, useList, useNow, useSelection } from "../core/hooks";
import { jobs, partitions } from "../core/lists";
import { explain } from "../core/reasons";
import { active, type Job, natural, ran, running, tasksIn } from "../core/records";
import { permits, session } from "../core/session";
import { words } from "../words";
import { Controls, Empty, Found, State, Text, Time, unfinished } from "../ui/basics";
import { ConfirmJobs, Dialog } from "../ui/dialog";
import { type Column, Table } from "../ui/table";

/** Which jobs the choices of the state show. */
const states: Record<string, (job: Job) => boolean> = {
	"": () => true,
	running: (job) => running(job),
	waiting: (job) => job.state === "PENDING",
	ended: (job) => !active(job),
	failed: (job) => job.kind === "failed" || job.kind === "timeout",
};

const elapsed = (job: Job) => (!job.started || job.state === "PENDING" ? 0 : ran(job, now() / 1000));

/** Why a job waits or has failed, as in squeue: the controller's description or, without one, the word for the reason. */
export function reasonOf(job: Job): string {
	const reason = job.why || job.reason;
	return job.state === "FAILED" && reason.startsWith("RaisedSignal:53(") ? words.jobView.filesFailed : reason;
}

/** The state of a job. A narrow screen has no column for the reason, so it shows that in place of the word for waiting. */
function StateOf({ job }: { job: Job }) {
	const word = words.jobState(job.held ? "HELD" : job.flags.includes("COMPLETING") ? "COMPLETING" : job.state);
	const reason = job.state === "PENDING" ? reasonOf(job) : "";
	return <State kind={job.kind}>{reason ? <><span class="wide">{word}</span><span class="narrow"><Text limit={60}>{reason}</Text></span></> : word}</State>;
}

const t = words.columns;
export const jobColumns: Column<Job>[] = [
	{ id: "id", title: t.job, sort: (j) => j.id, cell: (j) => <>{j.label}{j.tasks > 1 && <> <span class="tag optional" title={words.tasks(count(j.tasks))}>×{count(j.tasks)}</span></>}</> },
	{ id: "name", title: t.name, sort: (j) => j.name, cell: (j) => <Text limit={80}>{j.name}</Text>, class: "grow" },
	{ id: "state", title: t.state, sort: (j) => j.state, cell: (j) => <StateOf job={j} /> },
	{ id: "why", title: t.reason, sort: (j) => reasonOf(j), cell: (j) => <span title={explain(j.reason)[0] || reasonOf(j)}><Text limit={120}>{reasonOf(j)}</Text></span>, optional: true, class: "text why" },
	{ id: "user", title: t.user, sort: (j) => j.user, cell: (j) => <Text limit={40}>{j.user}</Text>, optional: true, class: "text" },
	{ id: "account", title: t.account, sort: (j) => j.account, cell: (j) => <Text limit={40}>{j.account}</Text>, optional: true, class: "text" },
	{ id: "partition", title: t.partition, sort: (j) => j.partition, cell: (j) => <Text limit={40}>{j.partition}</Text>, optional: true, class: "text" },
	{ id: "cpus", title: t.cpus, sort: (j) => j.cpus, cell: (j) => count(j.cpus), number: true, optional: true },
	{ id: "gpus", title: t.gpus, sort: (j) => j.gpus, cell: (j) => (j.gpus ? count(j.gpus) : ""), number: true, optional: true },
	{ id: "nodes", title: t.nodes, sort: (j) => natural(j.nodes), cell: (j) => (j.nodes ? <Text limit={60}>{j.nodes}</Text> : <span class="muted">{j.nodeCount > 1 ? words.nodeCount(count(j.nodeCount)) : ""}</span>), optional: true, class: "text" },
	{ id: "elapsed", title: t.elapsed, sort: elapsed, cell: (j) => (j.started && j.state !== "PENDING" ? duration(elapsed(j)) : ""), number: true, class: "roomy" },
	{ id: "limit", title: t.limit, sort: (j) => j.limit ?? 0, cell: (j) => duration(j.limit), number: true, optional: true },
	{ id: "submitted", title: t.submitted, sort: (j) => j.submitted, cell: (j) => <Time at={j.submitted} />, optional: true },
	{ id: "start", title: t.start, sort: (j) => j.started, cell: (j) => <Time at={j.started} />, optional: true },
	{ id: "end", title: t.end, sort: (j) => j.ended, cell: (j) => <Time at={active(j) ? 0 : j.ended} />, optional: true },
	{ id: "qos", title: t.qos, sort: (j) => j.qos, cell: (j) => <Text limit={40}>{j.qos}</Text>, optional: true },
	// The list has the fields of the following ones only if they are shown.
	{ id: "priority", title: t.priority, sort: (j) => j.more.priority ?? 0, cell: (j) => count(j.more.priority ?? 0), number: true, optional: true },
	{ id: "requested", title: t.requested, sort: (j) => j.more.requested ?? "", cell: (j) => <Text limit={80}>{j.more.requested ?? ""}</Text>, optional: true },
	{ id: "dependency", title: t.dependency, sort: (j) => j.more.dependency ?? "", cell: (j) => <Text limit={80}>{j.more.dependency ?? ""}</Text>, optional: true },
	{ id: "comment", title: t.comment, sort: (j) => j.more.comment ?? "", cell: (j) => <Text limit={80}>{j.more.comment ?? ""}</Text>, optional: true },
	{ id: "directory", title: t.directory, sort: (j) => j.more.directory ?? "", cell: (j) => <Text limit={80}>{j.more.directory ?? ""}</Text>, optional: true },
];
const extraFields: Record<string, string> = Object.fromEntries(["priority", "requested", "dependency", "comment", "directory"].map((id, i) => [id, fields.jobColumns[i]]));
const usual = ["id", "name", "state", "user", "partition", "cpus", "gpus", "nodes", "elapsed", "limit", "why", "submitted"];
let chosenColumns = usual;

/** Returns whether a job has all the words, each in one of its texts. */
function matches(job: Job, wanted: string[]): boolean {
	if (wanted.length === 0) return true;
	const text = `${job.label} ${job.name} ${job.user} ${job.account} ${job.partition} ${job.qos} ${job.state} ${job.reason} ${reasonOf(job)} ${job.nodes}`.toLowerCase();
	return wanted.every((word) => text.includes(word));
}

export function Jobs({ route }: { route: Route }) {
	const [jobList, partitionList] = [useList(jobs), useList(partitions)];
	const [columns, setColumns] = useState(chosenColumns);
	const [choosing, setChoosing] = useState(false);
	const [action, setAction] = useState<{ action: JobAction; jobs: Job[] }>();
	const { query } = route;
	const get = (name: string) => query.get(name) ?? "";
	const state = Object.hasOwn(states, get("state")) ? get("state") : ""; // an address may name anything
	const change = (name: string, value: string) => setQuery({ ...Object.fromEntries(query), [name]: value });

	const all = useMemo(() => [...jobList.items.values()], [jobList.revision]);
	const mine = useMemo(() => all.filter((job) => job.user === session.user), [all]);
	const scope = get("scope") || (jobList.complete && mine.length === 0 ? "all" : "mine");
	const minute = Math.floor(useNow(10)); // running times
	const wanted = get("q").toLowerCase().split(/\s+/).filter(Boolean);
	const inScope = useMemo(() => {
		const partition = get("partition");
		return (scope === "all" ? all : mine).filter((job) => (!partition || job.partition.split(",").includes(partition)) && matches(job, wanted));
	}, [all, scope, get("partition"), get("q")]);
	const rows = useMemo(() => inScope.filter(states[state]), [inScope, state]);
	const gpus = useMemo(() => all.some((job) => job.gpus > 0), [all]);
	const shown = useMemo(() => jobColumns.filter((c) => columns.includes(c.id) && (c.id !== "gpus" || gpus)), [columns, gpus, minute]);

	useEffect(() => jobs.want(columns.flatMap((id) => extraFields[id] ?? [])), [columns]);
	const [selected, setSelected] = useSelection([scope, state, get("partition"), get("q")].join("/"));

	const chosen = useMemo(() => rows.filter((job) => selected.has(job.id)), [rows, selected]);
	const actions = (["cancel", "hold", "release", "requeue"] as JobAction[]).map((name) => ({ name, jobs: chosen.filter((job) => offersJob(name, job)) })).filter((a) => a.jobs.length > 0);
	const number = (list: Job[]) => jobList.complete && count(tasksIn(list)); // nothing until it is known
	return (
		<div class="fill">
			<header class="viewhead">
				<h1>{words.nav.jobs}</h1>
				<div class="segments" role="group" aria-label={words.jobsView.whose}>
					<button type="button" aria-pressed={scope === "mine"} onClick={() => change("scope", "mine")}>{words.jobsView.mine} <b>{number(mine)}</b></button>
					<button type="button" aria-pressed={scope === "all"} onClick={() => change("scope", "all")}>{words.jobsView.all} <b>{number(all)}</b></button>
				</div>
				{permits("compute.create") && <div class="actions"><a class="button primary" href="#/submit">{words.nav.submit}</a></div>}
			</header>
			<div class="tools">
				<label class="search"><span class="hidden">{words.search}</span><input type="search" value={get("q")} placeholder={words.jobsView.search} onInput={(e) => change("q", e.currentTarget.value)} /></label>
				<Found q={get("q")} n={rows.length} />
				<label class="select"><span class="hidden">{words.partition}</span>
					<select value={get("partition")} onChange={(e) => change("partition", e.currentTarget.value)}>
						<option value="">{words.jobsView.everyPartition}</option>
						{[...partitionList.items.keys()].map((name) => <option key={name} value={name}>{visible(String(name))}</option>)}
					</select>
				</label>
				<div class="segments" role="group" aria-label={t.state}>
					{Object.keys(states).map((name) => (
						<button key={name} type="button" aria-pressed={state === name} onClick={() => change("state", name)}>
							{words.jobsView.states[name]} <b>{number(inScope.filter(states[name]))}</b>
						</button>
					))}
				</div>
				<button type="button" onClick={() => setChoosing(true)}>{words.jobsView.columns}</button>
			</div>
			{chosen.length > 0 && (
				<Controls class="bulk" role="status">
					<span>{words.selected(count(tasksIn(chosen)))}</span>
					{actions.map(({ name, jobs }) => <button key={name} type="button" class={name === "cancel" ? "danger" : ""} onClick={() => setAction({ action: name, jobs })}>{words.jobActions[name].button}{jobs.length < chosen.length && ` (${count(tasksIn(jobs))})`}</button>)}
					{actions.length === 0 && <span class="muted">{words.nothingToDo}</span>}
					<button type="button" onClick={() => setSelected(new Set())}>{words.clearSelection}</button>
				</Controls>
			)}
			{unfinished(jobList) ?? (
				<Table caption={words.nav.jobs} columns={shown} rows={rows} id={(job) => job.id} link={(job) => href(["job", job.label])} order={{ id: "id", down: true }}
					selected={selected} onSelect={setSelected} tall
					empty={scope === "mine" && all.length > 0 && wanted.length === 0 && !state
						? <Empty title={words.jobsView.noneOfYours}><button type="button" onClick={() => change("scope", "all")}>{words.jobsView.showAll}</button> {permits("compute.create") && <a class="button" href="#/submit">{words.nav.submit}</a>}</Empty>
						: <Empty title={all.length === 0 ? words.empty.jobs : words.noMatch}>{all.length > 0 && <button type="button" onClick={() => setQuery({ scope })}>{words.clearFilters}</button>}</Empty>} />
			)}
			{choosing && (
				<Dialog title={words.jobsView.columns} onClose={() => setChoosing(false)}>
					<div class="choices">
						{jobColumns.map((column) => (
							<label key={column.id} class="check">
								<input type="checkbox" checked={columns.includes(column.id)} disabled={column.id === "id"} onChange={(e) => {
									const on = e.currentTarget.checked;
									setColumns((old) => (chosenColumns = jobColumns.map((c) => c.id).filter((id) => (id === column.id ? on : old.includes(id)))));
								}} /> <span>{column.title}</span>
							</label>
						))}
					</div>
					<footer><button type="button" onClick={() => setColumns((chosenColumns = usual))}>{words.jobsView.usualColumns}</button></footer>
				</Dialog>
			)}
			{action && <ConfirmJobs action={action.action} jobs={action.jobs} onClose={(changed) => { setAction(undefined); if (changed) { setSelected(new Set()); jobs.refresh(); } }} />}
		</div>
	);
}
