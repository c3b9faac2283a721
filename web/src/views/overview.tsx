// The overview: how busy the cluster is, which jobs wait and why, and what has changed.
import { useMemo } from "preact/hooks";
import { count, memory, time } from "../core/format";
import { href, useList } from "../core/hooks";
import { type Amount, happenings, jobs, nodes, partitions, samples, seenSince, usage } from "../core/lists";
import { explain } from "../core/reasons";
import { type Job, type Node, type Partition, running } from "../core/records";
import type { Kind } from "../core/states";
import { session } from "../core/session";
import { words } from "../words";
import { Bar, Card, Empty, Share, Shape, State, Text, unfinished } from "../ui/basics";
import { NodeGrid } from "../ui/grid";
import { Plot } from "../ui/plot";

export function Overview() {
	const [jobList, nodeList, partitionList] = [useList(jobs), useList(nodes), useList(partitions)];
	const all = useMemo(() => [...nodeList.items.values()], [nodeList.revision]);
	const total = useMemo(() => usage(all), [all]);
	const counts = useMemo(() => countJobs(jobList.items.values()), [jobList.revision]);
	const rows = useMemo(() => partitionRows([...partitionList.items.values()], all, jobList.items.values()), [nodeList.revision, partitionList.revision, jobList.revision]);
	return (
		<div class="overview">
			<h1 class="hidden">{words.nav.overview}</h1>
			<div class="tiles">
				<Tile title={words.cpus} amount={total.cpus} format={count} ready={nodeList.complete} />
				<Tile title={words.memory} amount={total.memory} format={memory} ready={nodeList.complete} />
				{total.gpus.total > 0 && <Tile title={words.gpus} amount={total.gpus} format={count} ready={nodeList.complete} />}
				<section class="tile" aria-label={words.jobs}>
					<h2>{words.jobs}</h2>
					<p class="big">{jobList.complete ? count(counts.running) : "–"} <small>{words.running}</small></p>
					<p class="parts">
						<a href={href(["jobs"], { scope: "all", state: "waiting" })}><b>{jobList.complete ? count(counts.waiting) : "–"}</b> {words.waiting}</a>
						<a href={href(["jobs"], { scope: "mine" })}><b>{jobList.complete ? count(counts.mine) : "–"}</b> {words.yours}</a>
					</p>
				</section>
			</div>
			<div class="cards three">
				<Card title={words.overview.reasons} span note={jobList.complete && words.overview.waitingCount(count(counts.waiting), counts.waiting)}>
					{unfinished(jobList) ?? <Ranking list={counts.reasons} total={counts.waiting} empty={words.overview.nothingWaits}
						link={(reason) => href(["jobs"], { scope: "all", state: "waiting", q: reason })} describe={(reason) => explain(reason)[0]} />}
				</Card>
				<Card title={words.overview.users} note={words.overview.byCPUs}>
					{unfinished(jobList) ?? <Ranking list={counts.users} total={counts.cpus} empty={words.overview.nothingRuns} link={(user) => href(["jobs"], { scope: "all", q: user })} />}
				</Card>
			</div>
			<div class="cards">
				<Card title={words.nodes} wide note={nodeList.complete && words.overview.nodeCount(count(total.nodes))}>
					{unfinished(nodeList) ?? (all.length === 0 ? <Empty title={words.empty.nodes} /> : (
						<div class="gridbox">
							<NodeGrid nodes={all} revision={nodeList.revision} />
							<ul class="legend" aria-label={words.overview.nodeStates}>
								{[...total.kinds].map(([kind, n]) => (
									<li key={kind}><a href={href(["nodes"], { state: kind })}><State kind={kind}>{words.kinds[kind]}</State> <b>{count(n)}</b></a></li>
								))}
							</ul>
						</div>
					))}
				</Card>
				<Card title={words.partitions} wide>
					{unfinished(partitionList, nodeList, jobList) ?? (
						<div class="scroll"><table class="plain">
							<thead><tr>
								<th scope="col">{words.partition}</th><th scope="col" class="optional">{words.cpus}</th><th scope="col" class="number">{words.inUse}</th>
								<th scope="col" class="number optional">{words.kinds.idle}</th><th scope="col" class="number optional">{words.overview.unavailable}</th>
								{total.gpus.total > 0 && <th scope="col" class="number optional">{words.gpus}</th>}
								<th scope="col" class="number">{words.nodes}</th><th scope="col" class="number">{words.running}</th><th scope="col" class="number">{words.waiting}</th>
							</tr></thead>
							<tbody>{rows.map((row) => (
								<tr key={row.name}>
									<th scope="row"><a href={href(["jobs"], { scope: "all", partition: row.name })}><Text>{row.name}</Text></a>{row.standard && <> <span class="tag">{words.standard}</span></>}</th>
									<td class="barcell optional"><Bar amount={row.usage.cpus} /></td>
									<td class="number"><Share amount={row.usage.cpus} /></td>
									<td class="number optional">{count(row.usage.cpus.total - row.usage.cpus.used - row.usage.cpus.lost)}</td>
									<td class="number optional">{count(row.usage.cpus.lost)}</td>
									{total.gpus.total > 0 && <td class="number optional">{row.usage.gpus.total > 0 ? `${count(row.usage.gpus.used)} / ${count(row.usage.gpus.total)}` : "–"}</td>}
									<td class="number">{count(row.usage.nodes)}</td>
									<td class="number">{count(row.running)}</td>
									<td class="number">{count(row.waiting)}</td>
								</tr>
							))}</tbody>
						</table></div>
					)}
				</Card>
			</div>
			<div class="cards three">
				<Card title={words.overview.accounts} note={words.overview.byCPUs}>
					{unfinished(jobList) ?? <Ranking list={counts.accounts} total={counts.cpus} empty={words.overview.nothingRuns} link={(account) => href(["jobs"], { scope: "all", q: account })} />}
				</Card>
				<Card title={words.overview.jobStates}>
					{unfinished(jobList) ?? (
						<table class="plain"><tbody>
							{[...counts.states].sort((a, b) => b[1].n - a[1].n).map(([state, { kind, n }]) => (
								<tr key={state}><th scope="row"><a href={href(["jobs"], { scope: "all", q: state })}><State kind={kind}>{words.jobState(state)}</State></a></th><td class="number">{count(n)}</td></tr>
							))}
							{counts.states.size === 0 && <tr><td class="muted">{words.empty.jobs}</td></tr>}
						</tbody></table>
					)}
				</Card>
				<Card title={words.overview.changes} span>
					<Changes />
				</Card>
			</div>
			<div class="cards">
				<Card title={words.overview.history} wide note={seenSince > 0 && words.overview.historyNote(time(seenSince))}>
					<History />
				</Card>
			</div>
		</div>
	);
}

function Tile({ title, amount, format, ready }: { title: string; amount: Amount; format: (n: number) => string; ready: boolean }) {
	const idle = amount.total - amount.used - amount.lost;
	return (
		<section class="tile" aria-label={title}>
			<h2>{title}</h2>
			<p class="big">{ready ? <Share amount={amount} /> : "–"} <small>{words.inUse}</small></p>
			<Bar amount={amount} />
			<p class="parts">
				<span class="allocated"><Shape kind="allocated" /><b>{ready ? format(amount.used) : "–"}</b> {words.overview.used}</span>
				<span class="idle"><Shape kind="idle" /><b>{ready ? format(idle) : "–"}</b> {words.kinds.idle}</span>
				{amount.lost > 0 && <span class="down"><Shape kind="down" /><b>{format(amount.lost)}</b> {words.overview.unavailable}</span>}
			</p>
		</section>
	);
}

interface Counts {
	running: number;
	waiting: number;
	mine: number;
	cpus: number;
	states: Map<string, { kind: Kind; n: number }>;
	reasons: Map<string, number>;
	users: Map<string, number>;
	accounts: Map<string, number>;
}

function countJobs(list: Iterable<Job>): Counts {
	const c: Counts = { running: 0, waiting: 0, mine: 0, cpus: 0, states: new Map(), reasons: new Map(), users: new Map(), accounts: new Map() };
	const add = (to: Map<string, number>, key: string, n: number) => to.set(key, (to.get(key) ?? 0) + n);
	for (const job of list) {
		const state = c.states.get(job.state);
		if (state) state.n += job.tasks;
		else c.states.set(job.state, { kind: job.kind, n: job.tasks });
		if (job.user === session.user && (job.state === "PENDING" || running(job))) c.mine += job.tasks;
		if (job.state === "PENDING") {
			c.waiting += job.tasks;
			add(c.reasons, job.reason || words.overview.noReason, job.tasks);
		} else if (running(job)) {
			c.running++;
			c.cpus += job.cpus;
			add(c.users, job.user, job.cpus);
			add(c.accounts, job.account || words.overview.noAccount, job.cpus);
		}
	}
	return c;
}

interface PartitionRow {
	name: string;
	standard: boolean;
	usage: ReturnType<typeof usage>;
	running: number;
	waiting: number;
}

function partitionRows(listed: Partition[], list: Node[], all: Iterable<Job>): PartitionRow[] {
	const members = new Map<string, Node[]>(listed.map(({ name }) => [name, []]));
	for (const node of list) for (const name of node.partitions) members.get(name)?.push(node);
	const rows = new Map(listed.map(({ name, standard }) => [name, { name, standard, usage: usage(members.get(name)!), running: 0, waiting: 0 }]));
	for (const job of all) {
		if (job.state !== "PENDING" && !running(job)) continue;
		for (const name of job.partition.split(",")) {
			const row = rows.get(name);
			if (!row) continue;
			if (job.state === "PENDING") row.waiting += job.tasks;
			else row.running++;
		}
	}
	return [...rows.values()];
}

const TOP = 8;

/** The largest parts of a whole. */
function Ranking({ list, total, empty, link, describe }: { list: Map<string, number>; total: number; empty: string; link: (name: string) => string; describe?: (name: string) => string }) {
	const sorted = [...list].sort((a, b) => b[1] - a[1]);
	if (sorted.length === 0) return <Empty title={empty} />;
	const rest = sorted.slice(TOP).reduce((sum, [, n]) => sum + n, 0);
	return (
		<table class={describe ? "plain ranking described" : "plain ranking"}><tbody>
			{sorted.slice(0, TOP).map(([name, n]) => (
				<tr key={name}>
					<th scope="row"><a href={link(name)}><Text limit={60}>{name}</Text></a>{describe?.(name) && <small> {describe(name)}</small>}</th>
					<td class="barcell"><Bar amount={{ total, used: n, lost: 0 }} /></td>
					<td class="number">{count(n)}</td>
				</tr>
			))}
			{rest > 0 && <tr><th scope="row" class="muted">{words.overview.others(count(sorted.length - TOP))}</th><td class="barcell"><Bar amount={{ total, used: rest, lost: 0 }} /></td><td class="number">{count(rest)}</td></tr>}
		</tbody></table>
	);
}

function History() {
	const times = useMemo(() => samples.map((s) => s.at), [samples]);
	if (samples.length === 0) return <Empty title={words.overview.noHistory} />;
	return (
		<div class="plots">
			<Plot label={words.overview.plotJobs} times={times} format={count} series={[
				{ title: words.running, colour: "running", values: samples.map((s) => s.running), fill: true },
				{ title: words.waiting, colour: "waiting", values: samples.map((s) => s.waiting), dash: [5, 3] },
			]} />
			<Plot label={words.overview.plotCPUs} times={times} format={(n) => `${Math.round(n)} %`} top={100} series={[
				{ title: words.overview.cpusInUse, colour: "allocated", values: samples.map((s) => 100 * s.cpus), fill: true },
			]} />
		</div>
	);
}

function Changes() {
	if (happenings.length === 0) return <Empty title={words.overview.noChanges} />;
	return (
		<ol class="changes">
			{happenings.slice(0, 30).map((h) => (
				<li key={h.number}>
					<time dateTime={new Date(h.at).toISOString()}>{new Date(h.at).toLocaleTimeString(words.locale, { hourCycle: "h23" })}</time>
					{h.job && <><State kind={h.job.kind}>{words.jobState(h.job.state)}</State> <a href={href(["job", h.job.label])}>{h.job.label}</a> <Text limit={40}>{h.job.name}</Text> <span class="muted"><Text limit={40}>{h.job.user}</Text></span></>}
					{h.node && <><State kind={h.node.kind}>{words.kinds[h.node.kind]}</State> <a href={href(["node", h.node.name])}><Text>{h.node.name}</Text></a> <span class="muted"><Text limit={80}>{h.reason}</Text></span></>}
				</li>
			))}
		</ol>
	);
}
