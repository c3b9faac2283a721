// Usage by month, as the accounting daemon has added it up: the user's own, that
// of an account and its users, and that of the cluster.
import { useMemo, useState } from "preact/hooks";
import { type Answer, useAnswer } from "../core/answer";
import { now as clock } from "../core/clock";
import { count, fraction, percent, visible } from "../core/format";
import { type Route, setQuery } from "../core/hooks";
import { ownPaths, permits, session } from "../core/session";
import { clusterTime } from "../core/zone";
import { words } from "../words";
import { Empty, Loading, Nothing, Problem } from "../ui/basics";
import { Bars, type Part } from "../ui/bars";
import { type Column, Table } from "../ui/table";

const w = words.usageView;

/** A record of the operation usage. Amounts are in seconds of a unit. */
interface Row {
	tres: string;
	start: number;
	account: string;
	user: string;
	allocated: number;
	down: number;
	planned_down: number;
	idle: number;
	planned: number;
}

interface Report {
	usage: Row[];
	rolled_up: { until: number }[];
}

/** A month in the cluster's time zone, such as 2026-11. */
type Month = string;

const monthOf = (seconds: number): Month => clusterTime(seconds).slice(0, 7);

/** Returns the last n months, the current one included. */
function lastMonths(n: number, now: number): Month[] {
	const [year, month] = monthOf(now).split("-").map(Number);
	return Array.from({ length: n }, (_, i) => new Date(Date.UTC(year, month - n + i, 1)).toISOString().slice(0, 7));
}

const short = new Intl.DateTimeFormat(words.locale, { month: "short", timeZone: "UTC" });
const long = new Intl.DateTimeFormat(words.locale, { month: "long", year: "numeric", timeZone: "UTC" });
const dateOf = (month: Month) => Date.parse(`${month}-01T00:00:00Z`);

/** Names of the colours of parts, the largest first, and those of the rest. */
const COLOURS = ["allocated", "draining", "waiting", "idle", "planned"];
const [OTHERS, BELOW] = ["off", "edge"];

/** Asks for a report by month. The daemon has sums of whole months, so the current month is a request of its own. */
function useReport(report: string, query: string, months: Month[], now: number): Answer<Report> {
	const operation = (start: string, end: string) => (report ? `usage/?report=${report}&by=month&start=${start}&end=${end}${query}` : "");
	const current = months[months.length - 1];
	const past = useAnswer<Report>({ daemon: "accounting", operation: operation(`${months[0]}-01`, `${current}-01`), interval: 3600 });
	const present = useAnswer<Report>({ daemon: "accounting", operation: operation(`${current}-01`, String(now)), interval: 3600 });
	const data = useMemo(() => past.data && present.data && { usage: [...past.data.usage, ...present.data.usage], rolled_up: present.data.rolled_up }, [past.data, present.data]);
	return { data, failure: past.failure ?? present.failure, refresh: () => { past.refresh(); present.refresh(); } };
}

/** Adds up amounts by month, for each name. */
function byName(rows: Row[], months: Month[], name: (row: Row) => string): Map<string, number[]> {
	const sums = new Map<string, number[]>();
	for (const row of rows) {
		const month = months.indexOf(monthOf(row.start));
		if (month < 0) continue;
		const key = name(row);
		if (!sums.has(key)) sums.set(key, months.map(() => 0));
		sums.get(key)![month] += row.allocated;
	}
	return sums;
}

const total = (values: number[]) => values.reduce((sum, n) => sum + n, 0);

/** The largest amounts as parts of a plot, and one part for all others. */
function largest(sums: Map<string, number[]>, others: (n: number) => string): Part[] {
	const sorted = [...sums].sort((a, b) => total(b[1]) - total(a[1]) || (a[0] < b[0] ? -1 : 1));
	const parts = sorted.slice(0, COLOURS.length).map(([name, values], i) => ({ title: visible(name, 40), colour: COLOURS[i], values }));
	const rest = sorted.slice(COLOURS.length);
	if (rest.length > 0) parts.push({ title: others(rest.length), colour: OTHERS, values: rest.reduce((sum, [, values]) => sum.map((n, i) => n + values[i]), rest[0][1].map(() => 0)) });
	return parts;
}

type Scope = "own" | "account" | "cluster";

export function Usage({ route }: { route: Route }) {
	if (!session.accounting || !ownPaths()) return <Nothing view={words.nav.usage} why={!permits("slurmdb.read") ? words.notPermitted : session.accounting ? w.notServed : words.empty.accounting} />;
	return <Reported route={route} />;
}

function Reported({ route: { query } }: { route: Route }) {
	const [now] = useState(() => Math.ceil(clock() / 3_600_000) * 3600);
	const change = (name: string, value: string) => setQuery({ ...Object.fromEntries(query), [name]: value });
	const scope = (["account", "cluster"].includes(query.get("scope") ?? "") ? query.get("scope") : "own") as Scope;
	const months = useMemo(() => lastMonths([6, 24].find((n) => String(n) === query.get("months")) ?? 12, now), [query.get("months"), now]);

	const accounts = useAccounts(scope === "account");
	const account = query.get("account") ?? accounts?.[0] ?? "";
	const cluster = useReport("cluster", "", months, now); // also says which resources there are
	const resources = useMemo(() => [...new Set(["cpu", ...(cluster.data?.usage ?? []).filter((row) => row.tres === "mem" || row.tres.startsWith("gres/")).map((row) => row.tres)])], [cluster.data]);
	const resource = resources.find((name) => name === query.get("tres")) ?? "cpu";
	const of = `&tres=${encodeURIComponent(resource)}`;
	const own = scope === "own" && session.user !== "";
	const inAccount = scope === "account" && account !== "";
	const users = useReport(own || inAccount ? "users" : "", own ? `${of}&user=${encodeURIComponent(session.user)}` : `${of}&account=${encodeURIComponent(account)}`, months, now);
	const whole = useReport(inAccount ? "accounts" : "", `${of}&account=${encodeURIComponent(account)}`, months, now);

	const needed = scope === "own" ? [users] : scope === "account" ? [users, whole] : [cluster];
	const failure = needed.find((answer) => answer.failure && !answer.data);
	const ready = needed.every((answer) => answer.data);
	const what = w.amounts(words.tres[resource] ?? resource, resource);
	const title = { own: w.own(what), account: w.account(what, visible(account, 60)), cluster: w.cluster(what, visible(session.cluster, 60)) }[scope];
	const view = useMemo(() => (ready ? parts(scope, account, resource, months, users.data, whole.data, cluster.data) : undefined), [ready, scope, account, resource, months, users.data, whole.data, cluster.data]);
	const until = needed[0].data?.rolled_up?.[0]?.until;
	return (
		<div class="page">
			<header class="viewhead">
				<h1>{words.nav.usage}</h1>
				<div class="segments" role="group" aria-label={w.whose}>
					{(["own", "account", "cluster"] as Scope[]).map((name) => <button key={name} type="button" aria-pressed={scope === name} onClick={() => change("scope", name)}>{w.scopes[name]}</button>)}
				</div>
			</header>
			<div class="tools">
				{scope === "account" && (
					<label class="select"><span class="hidden">{words.columns.account}</span>
						<select value={account} onChange={(e) => change("account", e.currentTarget.value)}>
							{[...new Set([account, ...(accounts ?? [])])].filter(Boolean).map((name) => <option key={name} value={name}>{visible(name, 60)}</option>)}
						</select>
					</label>
				)}
				<label class="select"><span class="hidden">{words.jobView.resource}</span>
					<select value={resource} onChange={(e) => change("tres", e.currentTarget.value)}>{resources.map((name) => <option key={name} value={name}>{visible(words.tres[name] ?? name, 60)}</option>)}</select>
				</label>
				<label class="select"><span class="hidden">{w.time}</span>
					<select value={String(months.length)} onChange={(e) => change("months", e.currentTarget.value)}>{[6, 12, 24].map((n) => <option key={n} value={String(n)}>{w.months(n)}</option>)}</select>
				</label>
			</div>
			{failure ? <Problem failure={failure.failure!} retry={failure.refresh} />
				: scope === "own" && !own ? <Empty title={words.unknownUser} />
				: scope === "account" && accounts?.length === 0 && !account ? <Empty title={w.noAccounts} />
				: !view ? <Loading />
				: view.total === 0 ? <Empty title={w.nothing(title)} />
				: <Months title={title} view={view} months={months} until={until} />}
		</div>
	);
}

/** Returns the accounts of the user, first the default one, or all accounts for a user who has none. */
function useAccounts(wanted: boolean): string[] | undefined {
	const own = useAnswer<{ associations: { account: string; is_default: boolean }[] }>({ daemon: "accounting", operation: wanted ? `associations/?user=${encodeURIComponent(session.user)}&fields=account,is_default` : "", interval: 3600 });
	const none = own.data?.associations.length === 0 || own.failure;
	const all = useAnswer<{ accounts: { name: string }[] }>({ daemon: "accounting", operation: wanted && none ? "accounts/?fields=name" : "", interval: 3600 });
	return useMemo(() => {
		if (own.data && own.data.associations.length > 0) return [...new Set(own.data.associations.toSorted((a, b) => Number(b.is_default) - Number(a.is_default) || (a.account < b.account ? -1 : 1)).map((a) => a.account))];
		return all.data ? all.data.accounts.map((a) => a.name).sort() : all.failure ? [] : undefined;
	}, [own.data, all.data, all.failure]);
}

interface View {
	parts: Part[];
	total: number;
	/** Shares of what could be used, in each month; only for the cluster, and if known. */
	used?: string[];
}

/** Returns the parts of the plot, in the unit in which they are shown. */
function parts(scope: Scope, account: string, resource: string, months: Month[], users?: Report, whole?: Report, cluster?: Report): View {
	const shown = (list: Part[]) => list.map((part) => ({ ...part, values: part.values.map((n) => n / (resource === "mem" ? 3600 * 1024 : 3600)) }));
	if (scope === "cluster") {
		const rows = cluster!.usage.filter((row) => row.tres === resource);
		const of = (amount: (row: Row) => number) => byName(rows.map((row) => ({ ...row, allocated: amount(row) })), months, () => "").get("") ?? months.map(() => 0);
		const list: Part[] = [
			{ title: w.used, colour: "allocated", values: of((row) => row.allocated) }, { title: w.planned, colour: "planned", values: of((row) => row.planned) }, { title: w.idle, colour: "idle", values: of((row) => row.idle) },
			{ title: w.down, colour: "down", values: of((row) => row.down) }, { title: w.plannedDown, colour: "off", values: of((row) => row.planned_down) },
		];
		const [used, planned, idle] = list.map((part) => part.values);
		const known = list.filter((part) => total(part.values) > 0);
		// scheddbd records only what jobs used. Then the share is not known.
		return { parts: shown(known), total: total(known.flatMap((part) => part.values)), used: known.length > 1 ? months.map((_, i) => percent(used[i], used[i] + planned[i] + idle[i])) : undefined };
	}
	const mine = users!.usage.filter((row) => row.tres === resource && (scope === "own" || row.account === account));
	const list = largest(byName(mine, months, (row) => (scope === "own" ? row.account : row.user)), (n) => (scope === "own" ? w.otherAccounts(n) : w.otherUsers(n)));
	if (scope === "account") {
		const all = byName(whole!.usage.filter((row) => row.tres === resource && row.account === account), months, () => "").get("");
		const below = (all ?? []).map((n, i) => Math.max(0, n - total(list.map((part) => part.values[i]))));
		if (total(below) > 0) list.push({ title: w.subaccounts, colour: BELOW, values: below });
	}
	return { parts: shown(list), total: total(list.flatMap((part) => part.values)) };
}

interface Line {
	month: Month;
	index: number;
}

const amount = (n: number) => (n > 0 && n < 10 ? fraction(n) : count(Math.round(n)));

function Months({ title, view, months, until }: { title: string; view: View; months: Month[]; until?: number }) {
	const last = months.length - 1;
	const sums = months.map((_, i) => total(view.parts.map((part) => part.values[i])));
	const columns = useMemo<Column<Line>[]>(() => [
		{ id: "month", title: w.month, sort: (line) => line.month, cell: (line) => <>{long.format(dateOf(line.month))}{line.index === last && <> <span class="tag">{w.soFar}</span></>}</> },
		...view.parts.map((part, n): Column<Line> => ({ id: `part${n}`, title: part.title, sort: (line) => part.values[line.index], cell: (line) => amount(part.values[line.index]), number: true })),
		...(view.parts.length > 1 ? [{ id: "total", title: w.total, sort: (line: Line) => sums[line.index], cell: (line: Line) => amount(sums[line.index]), number: true }] : []),
		...(view.used ? [{ id: "used", title: w.share, cell: (line: Line) => view.used![line.index], number: true }] : []),
	], [view, months]);
	return (
		<>
			<section class="card" aria-label={title}>
				<header><h2>{title}</h2><div class="note">{until ? w.until(clusterTime(until).replace(/:\d\d /, " ")) : ""}</div></header>
				<Bars title={title} summary={w.summary} parts={view.parts} format={amount}
					labels={months.map((month, i) => [short.format(dateOf(month)), month.endsWith("-01") || (i === 0 && !months.slice(1, 4).some((next) => next.endsWith("-01"))) ? month.slice(0, 4) : undefined])} />
			</section>
			<div class="numbers"><Table caption={w.table(title)} columns={columns} rows={months.map((month, index) => ({ month, index }))} id={(line) => line.month} order={{ id: "month", down: false }} tall empty="" /></div>
		</>
	);
}
