// The list of nodes, and one node with the jobs on it.
import { useMemo, useState } from "preact/hooks";
import { useAnswer } from "../core/answer";
import { offersNode, wasRefused, type NodeAction } from "../core/changes";
import fields from "../core/fields.json";
import { count, fraction, memory, visible } from "../core/format";
import { href, type Route, setQuery, useList, useSelection } from "../core/hooks";
import { hostlistHas } from "../core/hostlist";
import { jobs, nodes, partitions } from "../core/lists";
import { active, type Node, toNode } from "../core/records";
import { nodeKinds } from "../core/states";
import { words } from "../words";
import { Bar, Card, Controls, Empty, Facts, Found, Loading, Problem, State, Text, Time, unfinished } from "../ui/basics";
import { ConfirmNodes } from "../ui/dialog";
import { type Column, Table } from "../ui/table";
import { jobColumns } from "./jobs";

const t = words.columns;
const part = (used: number, total: number) => (total > 0 ? `${count(used)} / ${count(total)}` : "–");
const columns: Column<Node>[] = [
	{ id: "name", title: t.node, sort: (n) => n.order, cell: (n) => <Text>{n.name}</Text> },
	{ id: "state", title: t.state, sort: (n) => nodeKinds.indexOf(n.kind), cell: (n) => <State kind={n.kind}>{words.kinds[n.kind]}</State> },
	{ id: "partitions", title: t.partition, sort: (n) => n.partitions.join(), cell: (n) => <Text limit={60}>{n.partitions.join(", ")}</Text>, optional: true, class: "text" },
	{ id: "bar", title: t.use, sort: (n) => (n.cpus ? n.usedCPUs / n.cpus : 0), cell: (n) => <Bar amount={{ total: n.cpus, used: n.usedCPUs, lost: 0 }} />, optional: true, class: "barcell" },
	{ id: "cpus", title: t.cpus, sort: (n) => n.usedCPUs, cell: (n) => part(n.usedCPUs, n.cpus), number: true },
	{ id: "load", title: t.load, sort: (n) => n.load, cell: (n) => fraction(n.load), number: true, optional: true },
	{ id: "memory", title: t.memory, sort: (n) => n.usedMemory, cell: (n) => `${memory(n.usedMemory)} / ${memory(n.memory)}`, number: true, optional: true },
	{ id: "free", title: t.free, sort: (n) => n.freeMemory ?? -1, cell: (n) => memory(n.freeMemory), number: true, optional: true },
	{ id: "gpus", title: t.gpus, sort: (n) => n.usedGPUs, cell: (n) => (n.gpus ? part(n.usedGPUs, n.gpus) : ""), number: true, optional: true },
	{ id: "reason", title: t.reason, sort: (n) => n.reason, cell: (n) => <span title={n.reason}><Text limit={120}>{n.reason}</Text></span>, class: "grow", optional: true },
	{ id: "features", title: t.features, sort: (n) => n.features.join(), cell: (n) => <Text limit={80}>{n.features.join(", ")}</Text>, optional: true, class: "text" },
];

export function Nodes({ route }: { route: Route }) {
	const [list, partitionList] = [useList(nodes), useList(partitions)];
	const [action, setAction] = useState<{ action: NodeAction; nodes: Node[] }>();
	const { query } = route;
	const get = (name: string) => query.get(name) ?? "";
	const change = (name: string, value: string) => setQuery({ ...Object.fromEntries(query), [name]: value });
	const all = useMemo(() => [...list.items.values()], [list.revision]);
	const wanted = get("q").toLowerCase().split(/\s+/).filter(Boolean);
	const found = useMemo(() => {
		const partition = get("partition");
		return all.filter((node) => {
			if (partition && !node.partitions.includes(partition)) return false;
			const text = `${node.name} ${node.state} ${node.flags.join(" ")} ${node.reason} ${node.partitions.join(" ")} ${node.features.join(" ")} ${node.gres}`.toLowerCase();
			return wanted.every((word) => text.includes(word));
		});
	}, [all, get("partition"), get("q")]);
	const kinds = useMemo(() => nodeKinds.map((kind) => ({ kind, n: found.filter((node) => node.kind === kind).length })).filter(({ kind, n }) => n > 0 || kind === get("state")), [found, get("state")]);
	const rows = useMemo(() => found.filter((node) => !get("state") || node.kind === get("state")), [found, get("state")]);
	const [selected, setSelected] = useSelection([get("state"), get("partition"), get("q")].join("/"));
	const chosen = useMemo(() => rows.filter((node) => selected.has(node.name)), [rows, selected]);
	const actions = (["drain", "resume"] as NodeAction[]).map((name) => ({ name, nodes: chosen.filter((node) => offersNode(name, node)) })).filter((a) => a.nodes.length > 0);
	const shown = useMemo(() => columns.filter((c) => c.id !== "gpus" || all.some((n) => n.gpus > 0)), [all]);
	return (
		<div class="fill">
			<header class="viewhead"><h1>{words.nav.nodes}</h1></header>
			<div class="tools">
				<label class="search"><span class="hidden">{words.search}</span><input type="search" value={get("q")} placeholder={words.nodesView.search} onInput={(e) => change("q", e.currentTarget.value)} /></label>
				<Found q={get("q")} n={rows.length} />
				<label class="select"><span class="hidden">{words.partition}</span>
					<select value={get("partition")} onChange={(e) => change("partition", e.currentTarget.value)}>
						<option value="">{words.jobsView.everyPartition}</option>
						{[...partitionList.items.keys()].map((name) => <option key={name} value={name}>{visible(String(name))}</option>)}
					</select>
				</label>
				<div class="segments" role="group" aria-label={t.state}>
					<button type="button" aria-pressed={get("state") === ""} onClick={() => change("state", "")}>{words.nodesView.all} <b>{list.complete && count(found.length)}</b></button>
					{kinds.map(({ kind, n }) => <button key={kind} type="button" aria-pressed={get("state") === kind} onClick={() => change("state", kind)}><State kind={kind}>{words.kinds[kind]}</State> <b>{count(n)}</b></button>)}
				</div>
			</div>
			{chosen.length > 0 && (
				<Controls class="bulk" role="status">
					<span>{words.selected(count(chosen.length))}</span>
					{actions.map(({ name, nodes }) => <button key={name} type="button" class={name === "drain" ? "danger" : ""} onClick={() => setAction({ action: name, nodes })}>{words.nodeActions[name].button}{nodes.length < chosen.length && ` (${nodes.length})`}</button>)}
					{actions.length === 0 && <span class="muted">{wasRefused("nodes") ? words.refusedNodes : words.nothingToDo}</span>}
					<button type="button" onClick={() => setSelected(new Set())}>{words.clearSelection}</button>
				</Controls>
			)}
			{unfinished(list) ?? (
				<Table caption={words.nav.nodes} columns={shown} rows={rows} id={(node) => node.name} link={(node) => href(["node", node.name])} order={{ id: "name", down: false }}
					selected={selected} onSelect={setSelected} tall
					empty={<Empty title={all.length === 0 ? words.empty.nodes : words.noMatch}>{all.length > 0 && <button type="button" onClick={() => setQuery({})}>{words.clearFilters}</button>}</Empty>} />
			)}
			{action && <ConfirmNodes action={action.action} nodes={action.nodes} onClose={(changed) => { setAction(undefined); if (changed) { setSelected(new Set()); nodes.refresh(); } }} />}
		</div>
	);
}

const w = words.nodeView;
const onNode = jobColumns.filter((column) => ["id", "name", "state", "user", "cpus", "gpus", "elapsed", "limit"].includes(column.id));

export function NodeView({ name }: { name: string }) {
	const [list, nodeList] = [useList(jobs), useList(nodes)];
	const [action, setAction] = useState<NodeAction>();
	const current = useAnswer<{ nodes: any[] }>({ daemon: "controller", operation: `node/${encodeURIComponent(name)}?fields=${fields.node.join(",")}`, interval: 15, sign: nodeList.items.get(name) });
	const here = useMemo(() => [...list.items.values()].filter((job) => active(job) && job.state !== "PENDING" && hostlistHas(job.nodes, name)), [list.revision, name]);
	const raw = current.data && (current.data.nodes.find((one) => one.name === name) ?? current.data.nodes[0]);
	if (!raw) {
		return (
			<div class="page">
				<header class="viewhead"><h1><Text>{name}</Text></h1></header>
				{current.failure?.status === 404 ? <Empty title={w.unknown(visible(name))}><a class="button" href="#/nodes">{words.nav.nodes}</a></Empty>
					: current.failure ? <Problem failure={current.failure} retry={current.refresh} /> : <Loading />}
			</div>
		);
	}
	const node = toNode(raw);
	const offered = (["drain", "resume"] as NodeAction[]).filter((one) => offersNode(one, node));
	const amount = (used: number, total: number) => ({ total, used, lost: 0 });
	return (
		<div class="page">
			<nav class="crumbs" aria-label={words.crumbs}><a href="#/nodes">{words.nav.nodes}</a> / <Text>{name}</Text></nav>
			<header class="viewhead">
				<div>
					<h1><Text>{node.name}</Text></h1>
					<p class="sub"><State kind={node.kind}>{words.kinds[node.kind]}</State>{node.state !== node.kind.toUpperCase() && <span class="tag">{node.state}</span>}{node.flags.map((flag) => <span class="tag" key={flag}>{flag}</span>)}</p>
				</div>
				<Controls class="actions">
					{offered.map((one) => <button key={one} type="button" class={one === "drain" ? "danger" : ""} onClick={() => setAction(one)}>{words.nodeActions[one].button}</button>)}
					{wasRefused("nodes") && <span class="muted">{words.refusedNodes}</span>}
				</Controls>
			</header>
			{current.failure && <Problem failure={current.failure} retry={current.refresh} />}
			{node.reason && <div class="banner why"><p><strong>{t.reason}</strong> <Text limit={2000}>{node.reason}</Text></p><p class="muted">{w.setBy} <Text>{raw.reason_set_by_user || "–"}</Text>, <Time at={raw.reason_changed_at.number} /></p></div>}
			<div class="cards flow">
				<Card title={w.use}>
					<table class="plain"><tbody>
						<tr><th scope="row">{words.cpus}</th><td class="barcell"><Bar amount={amount(node.usedCPUs, node.cpus)} /></td><td class="number">{part(node.usedCPUs, node.cpus)}</td></tr>
						<tr><th scope="row">{words.memory}</th><td class="barcell"><Bar amount={amount(node.usedMemory, node.memory)} /></td><td class="number">{memory(node.usedMemory)} / {memory(node.memory)}</td></tr>
						{node.gpus > 0 && <tr><th scope="row">{words.gpus}</th><td class="barcell"><Bar amount={amount(node.usedGPUs, node.gpus)} /></td><td class="number">{part(node.usedGPUs, node.gpus)}</td></tr>}
					</tbody></table>
					<Facts facts={[[t.load, fraction(node.load)], [t.free, memory(node.freeMemory)], [w.gres, raw.gres && <Text limit={500}>{raw.gres}</Text>], [w.gresUsed, raw.gres_used && <Text limit={500}>{raw.gres_used}</Text>]]} />
				</Card>
				<Card title={w.machine}>
					<Facts facts={[
						[w.sockets, w.layout(raw.sockets, raw.cores, raw.threads)], [w.architecture, <Text>{raw.architecture}</Text>], [w.system, <Text>{raw.operating_system}</Text>],
						[w.version, <Text>{raw.version}</Text>], [w.address, <Text>{raw.address}</Text>], [w.booted, <Time at={raw.boot_time.number} />], [w.busy, <Time at={raw.last_busy.number} />],
						[w.disk, raw.temporary_disk ? memory(raw.temporary_disk) : ""], [w.weight, count(raw.weight)],
					]} />
				</Card>
				<Card title={w.configuration}>
					<Facts facts={[
						[words.partitions, <Text limit={500}>{node.partitions.join(", ")}</Text>], [t.features, raw.features?.length ? <Text limit={500}>{raw.features.join(", ")}</Text> : ""],
						[w.activeFeatures, raw.active_features?.length && raw.active_features.join() !== raw.features.join() ? <Text limit={500}>{raw.active_features.join(", ")}</Text> : ""],
						[w.reservation, raw.reservation && <Text>{raw.reservation}</Text>], [w.topology, raw.topology && <Text>{raw.topology}</Text>], [t.comment, raw.comment && <Text limit={2000}>{raw.comment}</Text>],
					]} />
				</Card>
				<Card title={w.jobs} wide note={list.complete && count(here.length)}>
					{unfinished(list) ?? <Table caption={w.jobs} columns={onNode} rows={here} id={(job) => job.id} link={(job) => href(["job", job.label])} order={{ id: "id", down: false }} empty={<Empty title={w.noJobs} />} />}
				</Card>
			</div>
			{action && <ConfirmNodes action={action} nodes={[node]} onClose={() => { setAction(undefined); current.refresh(); nodes.refresh(); }} />}
		</div>
	);
}
