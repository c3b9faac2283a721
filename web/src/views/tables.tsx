// Partitions, reservations, fair shares and qualities of service, as tables.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useAnswer } from "../core/answer";
import type { Collection } from "../core/collection";
import fields from "../core/fields.json";
import { count, duration, fraction } from "../core/format";
import { href, useList, useNow } from "../core/hooks";
import { partitions, reservations } from "../core/lists";
import { type Num, type Partition, type Reservation, value } from "../core/records";
import { permits, session } from "../core/session";
import { words } from "../words";
import { Empty, Found, Loading, Nothing, Problem, State, Text, Time, unfinished } from "../ui/basics";
import { type Column, Table } from "../ui/table";

const t = words.columns;
const text = (s: string, limit = 120): ComponentChildren => (s ? <Text limit={limit}>{s}</Text> : "");
/** Joins lists of names, which may wrap after each name. */
const spaced = (lists: string[]) => lists.filter(Boolean).join("; ").replace(/,/g, ", ");
const infinite = (n: number | undefined) => (n === undefined || n === Infinity ? words.unlimited : count(n));

const partitionColumns: Column<Partition>[] = [
	{ id: "name", title: words.partition, sort: (p) => p.name, cell: (p) => <><Text>{p.name}</Text>{p.standard && <> <span class="tag">{words.standard}</span></>}</> },
	{ id: "state", title: t.state, sort: (p) => p.state, cell: (p) => <State kind={p.state === "UP" ? "done" : p.state === "DRAIN" ? "draining" : "down"}>{words.partitionStates[p.state] ?? p.state}</State> },
	{ id: "nodes", title: t.nodes, sort: (p) => p.nodes, cell: (p) => count(p.nodes), number: true, optional: true },
	{ id: "cpus", title: t.cpus, sort: (p) => p.cpus, cell: (p) => count(p.cpus), number: true },
	{ id: "maxtime", title: t.maxTime, sort: (p) => p.maxTime ?? Infinity, cell: (p) => duration(p.maxTime ?? Infinity), number: true },
	{ id: "default", title: t.defaultTime, sort: (p) => p.defaultTime ?? Infinity, cell: (p) => (p.defaultTime === undefined ? "" : duration(p.defaultTime)), number: true, optional: true },
	{ id: "maxnodes", title: t.maxNodes, sort: (p) => p.maxNodes ?? Infinity, cell: (p) => infinite(p.maxNodes), number: true, optional: true },
	{ id: "tier", title: t.tier, sort: (p) => p.tier, cell: (p) => count(p.tier), number: true, optional: true },
	{ id: "qos", title: t.qos, sort: (p) => p.qos, cell: (p) => text(p.qos), optional: true },
	{ id: "allowed", title: t.allowed, sort: (p) => p.accounts, cell: (p) => text(spaced([p.accounts, p.groups]) || (p.denied ? words.except(spaced([p.denied])) : words.everyone)), optional: true, class: "text" },
	{ id: "hosts", title: t.hosts, sort: (p) => p.hosts, cell: (p) => text(p.hosts, 100), class: "grow", optional: true },
];

export const Partitions = () => <ListView list={partitions} title={words.nav.partitions} columns={partitionColumns} id={(p) => p.name} link={(p) => href(["nodes"], { partition: p.name })} search={(p) => `${p.name} ${p.state} ${p.hosts} ${p.accounts} ${p.qos}`} empty={words.empty.partitions} />;

const reservationColumns: Column<Reservation>[] = [
	{ id: "name", title: t.reservation, sort: (r) => r.name, cell: (r) => <Text limit={80}>{r.name}</Text> },
	{ id: "when", title: t.state, sort: (r) => r.start, cell: (r) => <When reservation={r} /> },
	{ id: "start", title: t.start, sort: (r) => r.start, cell: (r) => <Time at={r.start} /> },
	{ id: "end", title: t.end, sort: (r) => r.end, cell: (r) => <Time at={r.end} /> },
	{ id: "nodes", title: t.nodes, sort: (r) => r.nodes, cell: (r) => count(r.nodes), number: true, optional: true },
	{ id: "cores", title: t.cores, sort: (r) => r.cores, cell: (r) => count(r.cores), number: true, optional: true },
	{ id: "partition", title: words.partition, sort: (r) => r.partition, cell: (r) => text(r.partition), optional: true },
	{ id: "who", title: t.allowed, sort: (r) => r.users + r.accounts, cell: (r) => text(spaced([r.users, r.accounts, r.groups])), optional: true, class: "text" },
	{ id: "flags", title: t.flags, sort: (r) => r.flags.join(), cell: (r) => text(r.flags.join(", ")), optional: true },
	{ id: "hosts", title: t.hosts, sort: (r) => r.hosts, cell: (r) => text(r.hosts, 100), class: "grow", optional: true },
];

function When({ reservation: r }: { reservation: Reservation }) {
	const now = useNow(30);
	return now < r.start ? <State kind="waiting">{words.reservation.planned}</State> : now < r.end ? <State kind="running">{words.reservation.active}</State> : <State kind="done">{words.reservation.over}</State>;
}

export const Reservations = () => <ListView list={reservations} title={words.nav.reservations} columns={reservationColumns} id={(r) => r.name} search={(r) => `${r.name} ${r.users} ${r.accounts} ${r.partition} ${r.hosts} ${r.flags.join(" ")}`} empty={words.empty.reservations} />;

interface ListProps<T> {
	title: string;
	columns: Column<T>[];
	id: (row: T) => string;
	link?: (row: T) => string;
	search: (row: T) => string;
	empty: string;
}

function ListView<T>({ list, ...props }: ListProps<T> & { list: Collection<T> }) {
	const { items, revision } = useList(list);
	const rows = useMemo(() => [...items.values()], [revision]);
	return <Searchable rows={rows} state={unfinished(list)} {...props} />;
}

/** A table with a search. */
function Searchable<T>({ title, columns, rows, id, link, search, empty, state }: ListProps<T> & { rows: T[]; state: ComponentChildren }) {
	const [q, setQ] = useState("");
	const wanted = q.toLowerCase().split(/\s+/).filter(Boolean);
	const found = useMemo(() => rows.filter((row) => {
		const all = search(row).toLowerCase();
		return wanted.every((word) => all.includes(word));
	}), [rows, q]);
	return (
		<div class="fill">
			<header class="viewhead"><h1>{title}</h1></header>
			<div class="tools">
				<label class="search"><span class="hidden">{words.search}</span><input type="search" value={q} placeholder={words.search} onInput={(e) => setQ(e.currentTarget.value)} /></label>
				<Found q={q} n={found.length} />
			</div>
			{state ?? <Table caption={title} columns={columns} rows={found} id={id} link={link} order={{ id: columns[0].id, down: false }} tall empty={<Empty title={rows.length === 0 ? empty : words.noMatch} />} />}
		</div>
	);
}

/** A table of an answer that the page asks for once a minute. */
function AnswerView<A, T>({ daemon, operation, records, ...props }: ListProps<T> & { daemon: "controller" | "accounting"; operation: string; records: (answer: A) => T[] }) {
	const answer = useAnswer<A>({ daemon, operation, interval: 60, maxAge: 30 });
	const rows = useMemo(() => (answer.data ? records(answer.data) : []), [answer.data]);
	const state = answer.data ? null : answer.failure ? <Problem failure={answer.failure} retry={answer.refresh} /> : <Loading />;
	return <Searchable rows={rows} state={state} {...props} />;
}

interface Share {
	name: string;
	parent: string;
	partition: string;
	type: string[];
	shares: Num;
	shares_normalized: Num;
	usage: number;
	effective_usage: Num;
	usage_normalized: Num;
	fairshare: { factor: Num; level: Num };
	depth: number; // in the tree
	order: number;
	user: boolean;
	id: string;
}

const share = (n: Num | number | undefined) => (typeof n === "number" ? n : (value(n) ?? 0));
/** The number of shares of those who have the shares of their account. */
const PARENT = 0x7fffffff;
const level = (s: Share) => {
	const n = s.shares?.number === PARENT ? undefined : value(s.fairshare?.level);
	return n === undefined ? "" : n === Infinity ? "∞" : n.toFixed(3);
};
const shareColumns: Column<Share>[] = [
	{ id: "name", title: t.accountOrUser, sort: (s) => s.order, cell: (s) => <span class="branch"><span style={{ width: `${16 * s.depth}px` }} /><Text>{s.name}</Text>{!s.user && <span class="tag optional">{t.account}</span>}</span> },
	{ id: "parent", title: t.parent, sort: (s) => s.parent, cell: (s) => text(s.parent), optional: true, class: "text" },
	{ id: "partition", title: words.partition, sort: (s) => s.partition, cell: (s) => text(s.partition), optional: true },
	{ id: "shares", title: t.shares, sort: (s) => share(s.shares), cell: (s) => (s.shares?.set && s.shares.number !== PARENT ? count(s.shares.number) : words.inherited), number: true, optional: true },
	{ id: "normal", title: t.shareOfAll, sort: (s) => share(s.shares_normalized), cell: (s) => percent(share(s.shares_normalized)), number: true },
	{ id: "usage", title: t.usage, sort: (s) => s.usage, cell: (s) => fraction(s.usage / 3600), number: true, optional: true },
	{ id: "used", title: t.usageOfAll, sort: (s) => share(s.usage_normalized), cell: (s) => percent(share(s.usage_normalized)), number: true, optional: true },
	{ id: "effective", title: t.effectiveUsage, sort: (s) => share(s.effective_usage), cell: (s) => percent(share(s.effective_usage)), number: true },
	{ id: "level", title: t.levelFS, sort: (s) => share(s.fairshare?.level), cell: (s) => level(s), number: true, optional: true },
	{ id: "factor", title: t.fairshare, sort: (s) => share(s.fairshare?.factor), cell: (s) => (s.user && s.fairshare?.factor?.set ? s.fairshare.factor.number.toFixed(3) : ""), number: true },
];
const percent = (n: number) => `${fraction(100 * n)} %`;

/** Puts the shares into the order of their tree, in which users and accounts follow their account. */
function tree(list: Share[]): Share[] {
	const children = new Map<string, Share[]>();
	for (const s of list) children.set(s.parent, [...(children.get(s.parent) ?? []), s]);
	const names = new Set(list.filter((s) => !s.type.includes("USER")).map((s) => s.name));
	const sorted: Share[] = [];
	const visited = new Set<Share>();
	const visit = (s: Share, depth: number) => {
		if (visited.has(s)) return;
		visited.add(s);
		const user = s.type.includes("USER");
		sorted.push({ ...s, depth, user, order: sorted.length, id: `${s.parent}/${s.name}/${s.partition}/${sorted.length}` });
		if (!user) for (const child of children.get(s.name) ?? []) visit(child, depth + 1);
	};
	for (const s of list) if (!names.has(s.parent) || s.parent === s.name) visit(s, 0);
	for (const s of list) visit(s, 0);
	return sorted;
}

export const Shares = () => (
	<AnswerView<{ shares: { shares: Share[] } }, Share> daemon="controller" operation={`shares?fields=${fields.shares.join(",")}`} title={words.nav.shares} columns={shareColumns} id={(s) => s.id}
		records={(a) => tree(a.shares.shares)} search={(s) => `${s.name} ${s.parent}`} empty={words.empty.shares} />
);

const limits = (list: any[] | undefined) => (list ?? []).map((one) => `${one.name ? `${one.type}/${one.name}` : one.type}=${count(one.count)}`).join(", ");
const qosColumns: Column<any>[] = [
	{ id: "name", title: t.qos, sort: (q) => q.name, cell: (q) => <Text>{q.name}</Text> },
	{ id: "priority", title: t.priority, sort: (q) => share(q.priority), cell: (q) => count(share(q.priority)), number: true },
	{ id: "factor", title: t.usageFactor, sort: (q) => share(q.usage_factor), cell: (q) => fraction(share(q.usage_factor)), number: true, optional: true },
	{ id: "time", title: t.maxTime, sort: (q) => value(q.limits.max.wall_clock.per.job) ?? Infinity, cell: (q) => duration(60 * (value(q.limits.max.wall_clock.per.job) ?? Infinity)), number: true },
	{ id: "jobs", title: t.jobsPerUser, sort: (q) => value(q.limits.max.jobs.active_jobs.per.user) ?? Infinity, cell: (q) => infinite(value(q.limits.max.jobs.active_jobs.per.user)), number: true },
	{ id: "submitted", title: t.submittedPerUser, sort: (q) => value(q.limits.max.jobs.per.user) ?? Infinity, cell: (q) => infinite(value(q.limits.max.jobs.per.user)), number: true, optional: true },
	{ id: "peruser", title: t.perUser, cell: (q) => text(limits(q.limits.max.tres.per.user)), optional: true },
	{ id: "perjob", title: t.perJob, cell: (q) => text(limits(q.limits.max.tres.per.job)), optional: true },
	{ id: "total", title: t.together, cell: (q) => text(limits(q.limits.max.tres.total)), optional: true },
	{ id: "preempts", title: t.preempts, cell: (q) => text((q.preempt.list ?? []).join(", ")), optional: true },
	{ id: "description", title: t.description, sort: (q) => q.description, cell: (q) => text(q.description), class: "grow", optional: true },
];

export const QOS = () => session.accounting
	? <AnswerView<{ qos: any[] }, any> daemon="accounting" operation={`qos/?fields=${fields.qos.join(",")}`} title={words.nav.qos} columns={qosColumns} id={(q) => q.name} records={(a) => a.qos} search={(q) => `${q.name} ${q.description}`} empty={words.empty.qos} />
	: <Nothing view={words.nav.qos} why={permits("slurmdb.read") ? words.empty.accounting : words.notPermitted} />;
