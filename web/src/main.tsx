// The page: signing in, the navigation, and the view that the address selects.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { duration, visible } from "./core/format";
import { keepFocus, useList, useNow, useRoute, useSession, type Route } from "./core/hooks";
import { jobs, nodes, partitions } from "./core/lists";
import { end, permits, session, start } from "./core/session";
import { Jobs } from "./views/jobs";
import { JobView } from "./views/job";
import { Nodes, NodeView } from "./views/nodes";
import { Overview } from "./views/overview";
import { SignIn } from "./views/signin";
import { Submit } from "./views/submit";
import { Partitions, QOS, Reservations, Shares } from "./views/tables";
import { Usage } from "./views/usage";
import { Empty, Loading, Nothing, OtherClusters, Text } from "./ui/basics";
import { words } from "./words";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const places = ["overview", "jobs", "nodes", "partitions", "reservations", "usage", "shares", "qos"] as const;
const place: Record<string, string> = { job: "jobs", node: "nodes" };

function View({ route }: { route: Route }) {
	const [name, id = ""] = route.parts;
	switch (name) {
		case "overview":
			return <Overview />;
		case "jobs":
			return <Jobs route={route} />;
		case "job":
			return <JobView key={id} id={id} submitted={route.query.get("submitted") === "yes"} />;
		case "nodes":
			return <Nodes route={route} />;
		case "node":
			return <NodeView key={id} name={id} />;
		case "partitions":
			return <Partitions />;
		case "reservations":
			return <Reservations />;
		case "usage":
			return <Usage route={route} />;
		case "shares":
			return <Shares />;
		case "qos":
			return <QOS />;
		case "submit":
			return permits("compute.create") ? <Submit /> : <Nothing view={words.nav.submit} why={words.notPermitted} />;
	}
	return <Empty title={words.noView}><a class="button" href="#/">{words.nav.overview}</a></Empty>;
}

/**
 * How current the data is. While the controller is down, streams of events stay
 * open and are silent, so a list that the page asks for shows whether it answers.
 */
function Freshness() {
	const [jobList, nodeList, partitionList] = [useList(jobs), useList(nodes), useList(partitions)];
	useNow(5);
	const failing = [jobList, nodeList, partitionList].filter((list) => list.failure);
	const [kind, text, title] = ((): string[] => {
		if (failing.length > 0) {
			const age = (performance.now() - Math.min(...failing.map((list) => list.current))) / 1000;
			return ["bad", failing.every((list) => list.complete) ? words.fresh.stale(duration(age)) : words.fresh.broken, failing[0].failure!.message];
		}
		if (jobList.mode === "stream" && nodeList.mode === "stream") return ["live", words.fresh.live, words.fresh.liveTitle];
		if (jobList.mode === "poll" || nodeList.mode === "poll") return ["", words.fresh.poll(jobs.source.interval), words.fresh.pollTitle];
		return ["", words.fresh.connecting];
	})();
	return (
		<>
			<span class={`fresh ${kind}`} title={title}><span class="dot" aria-hidden="true" />{text}</span>
			<span class="hidden" role="status">{failing.length > 0 && words.fresh.interrupted /* once, and not each new age */}</span>
		</>
	);
}

/** Who the user is, and for how long their token is valid. */
function User() {
	const now = useNow(1);
	const left = session.expires ? session.expires - now : Infinity;
	useEffect(() => {
		if (left <= 0) end(words.signIn.expired);
	}, [left <= 0]);
	const soon = left < 300;
	return (
		<div class="user">
			<span class="name"><Text limit={40}>{session.user || words.unknownUser}</Text></span>
			{session.scopes && <span class="tag optional" title={words.signIn.scopesTitle(session.scopes.join(", "))}>{session.scopes.every((scope) => scope.endsWith(".read")) ? words.signIn.readOnly : words.signIn.limited}</span>}
			{session.expires > 0 && <span class={soon ? "expiry soon" : "expiry"}>{words.signIn.expiresIn(left > 86400 ? `${Math.floor(left / 86400)}d` : duration(left))}</span>}
			<span class="hidden" role="alert">{soon && (left > 60 ? words.signIn.expiresSoon : words.signIn.expiresVerySoon)}</span>
			{session.byToken ? <button type="button" class="small" onClick={() => end()}>{words.signIn.signOut}</button> : <span class="muted" title={words.signIn.noTokenTitle}>{words.signIn.noToken}</span>}
		</div>
	);
}

function Shell() {
	const route = useRoute();
	const [open, setOpen] = useState(false);
	const shown = useRef(false);
	const [menu, nav] = [useRef<HTMLButtonElement>(null), useRef<HTMLElement>(null)];
	const close = (next?: HTMLElement | null) => {
		if (open && nav.current!.contains(document.activeElement)) next?.focus(); // the menu is hidden
		setOpen(false);
	};
	const here = place[route.parts[0]] ?? route.parts[0];
	useEffect(() => {
		close(document.getElementById("main"));
		const name = (words.nav as Record<string, string>)[here];
		if (shown.current) keepFocus(); // the link that led here is gone
		shown.current = true;
		document.title = [route.parts[1] ? visible(route.parts[1], 80) : name, session.cluster || words.title].filter(Boolean).join(" – ");
	}, [route]);
	return (
		<div class="shell" onKeyDown={(e) => e.key === "Escape" && close(menu.current)} onClick={(e) => menu.current!.contains(e.target as Node) || close(document.getElementById("main"))}>
			<a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")!.focus(); }}>{words.skip}</a>
			<header class="top">
				<button type="button" ref={menu} class="icon menu" aria-expanded={open} aria-controls="nav" aria-label={words.menu} onClick={() => setOpen(!open)}>☰</button>
				<a class="brand" href="#/"><svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true"><rect x="1" y="1" width="8" height="8" rx="2" /><rect x="11" y="1" width="8" height="8" rx="2" class="b" /><rect x="1" y="11" width="8" height="8" rx="2" class="b" /><rect x="11" y="11" width="8" height="8" rx="2" class="c" /></svg><span><Text limit={60}>{session.cluster || words.title}</Text></span></a>
				<Freshness />
				<User />
			</header>
			<nav id="nav" ref={nav} class={open ? "side open" : "side"} aria-label={words.navigation}>
				<ul>
					{places.map((name) => <li key={name}><a href={`#/${name}`} aria-current={here === name ? "page" : undefined}>{words.nav[name]}</a></li>)}
					{permits("compute.create") && <li class="apart"><a href="#/submit" aria-current={here === "submit" ? "page" : undefined}>{words.nav.submit}</a></li>}
				</ul>
				<OtherClusters />
				<p class="release">{session.release && words.release(session.release, session.version)}</p>
			</nav>
			<main id="main" tabIndex={-1}><View route={route} /></main>
		</div>
	);
}

function Page() {
	const { phase, notice } = useSession();
	switch (phase) {
		case "starting":
			return <Loading />;
		case "failed":
			return <main class="signin"><Empty title={words.cantStart}><p><Text limit={1000}>{notice}</Text></p><p><button type="button" onClick={() => location.reload()}>{words.retry}</button></p></Empty></main>;
		case "signed out":
			return <SignIn />;
	}
	return <Shell />;
}

render(<Page />, document.getElementById("page")!);
void start();
