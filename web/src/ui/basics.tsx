// Small parts of which the views are made.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { session, type Failure } from "../core/session";
import type { Collection } from "../core/collection";
import { keepFocus } from "../core/hooks";
import type { Amount } from "../core/lists";
import type { Kind } from "../core/states";
import { count, exactTime, percent, time, visible } from "../core/format";
import { words } from "../words";

/** A text of a user: hidden characters are shown, and it can't change the direction of its surroundings. If it is cut, its title has all of it. */
export function Text({ children, limit }: { children: string; limit?: number }) {
	const shown = visible(children, limit);
	const whole = visible(children, Infinity);
	return <bdi title={shown === whole ? undefined : whole}>{shown}</bdi>;
}

/** Links to the pages of the site's other clusters, if it lists any. */
export function OtherClusters() {
	if (session.others.length === 0) return null;
	return (
		<div class="others">
			<h2>{words.otherClusters}</h2>
			<ul>{session.others.map(([name, url]) => <li key={url}><a href={url}><Text limit={60}>{name}</Text></a></li>)}</ul>
		</div>
	);
}

/** A point in time. */
export function Time({ at }: { at: number }) {
	return at ? <time dateTime={new Date(at * 1000).toISOString()} title={exactTime(at)}>{time(at)}</time> : <span class="none">–</span>;
}

// The shapes of states, in a square of 12 units.
const ring = <circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" stroke-width="1.5" />;
const disc = <circle cx="6" cy="6" r="5" fill="currentColor" />;
const square = <rect x="1" y="1" width="10" height="10" rx="2" fill="currentColor" />;
const frame = <rect x="1.75" y="1.75" width="8.5" height="8.5" rx="1.5" fill="none" stroke="currentColor" stroke-width="1.5" />;
const line = (d: string) => <path d={d} fill="none" stroke="currentColor" stroke-width="1.9" stroke-linecap="round" stroke-linejoin="round" />;
const shapes: Record<Kind, JSX.Element> = {
	running: <path d="M3 1.6v8.8L10.6 6z" fill="currentColor" />,
	waiting: <>{ring}{line("M6 3.9V6l1.4 1")}</>,
	paused: line("M3.75 2v8M8.25 2v8"),
	ending: <>{ring}<circle cx="6" cy="6" r="1.75" fill="currentColor" /></>,
	done: line("M1.8 6.4 4.6 9.2 10.2 2.8"),
	failed: line("M2.2 2.2l7.6 7.6M9.8 2.2 2.2 9.8"),
	cancelled: <>{ring}{line("M3.2 8.8l5.6-5.6")}</>,
	timeout: <>{disc}<path d="M6 3v3.4l2 1.2" fill="none" stroke="var(--surface)" stroke-width="1.4" stroke-linecap="round" /></>,
	allocated: square,
	mixed: <>{frame}<path d="M1.75 6h8.5v3a1.5 1.5 0 0 1-1.5 1.5h-5.5A1.5 1.5 0 0 1 1.75 9z" fill="currentColor" /></>,
	idle: frame,
	draining: <path d="M6 11 .8 2h10.4z" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round" />,
	drained: <path d="M6 11 .8 2h10.4z" fill="currentColor" />,
	down: line("M2.2 2.2l7.6 7.6M9.8 2.2 2.2 9.8"),
	planned: <>{frame}{line("M6 4v2l1.2 0.8")}</>,
	reserved: <>{frame}{line("M4 6h4")}</>,
	maintenance: <>{frame}{line("M4 4l4 4M8 4 4 8")}</>,
	off: <>{line("M6 1.2v4.6")}<path d="M3.6 3a4.4 4.4 0 1 0 4.8 0" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" /></>,
	unknown: <>{ring}<circle cx="6" cy="6" r="0.9" fill="currentColor" /></>,
};

/** The shape of a kind of state, without its word. */
export function Shape({ kind }: { kind: Kind }) {
	return <svg class={`shape ${kind}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">{shapes[kind]}</svg>;
}

/** A state: its shape and its word. */
export function State({ kind, children }: { kind: Kind; children: ComponentChildren }) {
	return <span class={`state ${kind}`}><Shape kind={kind} /><span>{children}</span></span>;
}

/** A bar that shows how much of something is in use. The numbers are beside it, so it needs no text. */
export function Bar({ amount }: { amount: Amount }) {
	const width = (n: number) => ({ width: `${amount.total > 0 ? (100 * n) / amount.total : 0}%` });
	return (
		<span class="bar" aria-hidden="true">
			<span class="used" style={width(amount.used)} />
			<span class="lost" style={width(amount.lost)} />
		</span>
	);
}

/** How much is in use of what jobs can use. */
export function Share({ amount }: { amount: Amount }) {
	return <>{percent(amount.used, amount.total - amount.lost)}</>;
}

/** A part of a view, with a heading. */
export function Card({ title, note, children, wide, span }: { title: string; note?: ComponentChildren; children: ComponentChildren; wide?: boolean; span?: boolean }) {
	return (
		<section class={wide ? "card wide" : span ? "card span" : "card"} aria-label={title}>
			<header><h2>{title}</h2>{note !== undefined && <div class="note">{note}</div>}</header>
			{children}
		</section>
	);
}

/** Controls, some or all of which may go. If the one with the focus does, the view gets the focus. */
export function Controls({ children, ...props }: { class: string; role?: "status"; children: ComponentChildren }) {
	const box = useRef<HTMLDivElement>(null);
	const focused = !!box.current?.contains(document.activeElement); // before this rendering
	useLayoutEffect(() => {
		if (focused) keepFocus();
	});
	useEffect(() => () => void window.setTimeout(keepFocus), []);
	return <div ref={box} {...props}>{children}</div>;
}

/** What a view shows in place of data. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
	return <div class="empty"><p class="title">{title}</p>{children && <div>{children}</div>}</div>;
}

/** A view that has nothing to show, and the reason. */
export const Nothing = ({ view, why }: { view: string; why: string }) => <div class="page"><header class="viewhead"><h1>{view}</h1></header><Empty title={why} /></div>;

/** Announces to a screen reader how many rows a search finds. */
export function Found({ q, n }: { q: string; n: number }) {
	return <span class="hidden" role="status">{q && words.found(count(n))}</span>;
}

/** An error, with what to do about it. */
export function Problem({ failure, retry }: { failure: Failure; retry?: () => void }) {
	return (
		<div class="problem" role="alert">
			<p><strong>{words.failed(failure.status)}</strong> <Text limit={1000}>{failure.message}</Text></p>
			<p>{words.remedy(failure.status)} {retry && <button type="button" class="small" onClick={retry}>{words.retry}</button>}</p>
		</div>
	);
}

export function Loading() {
	return <div class="loading" role="status"><span class="spinner" aria-hidden="true" />{words.loading}</div>;
}

/** What a list shows until it is complete; null if it is. */
export function unfinished(...lists: Collection<any>[]) {
	const broken = lists.find((list) => !list.complete && list.failure);
	if (broken) return <Problem failure={broken.failure!} retry={() => broken.refresh()} />;
	if (lists.some((list) => !list.complete)) return <Loading />;
	return null;
}

/** Names and values. Values that are empty are left out. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
	const shown = facts.filter(([, value]) => value !== "" && value !== undefined && value !== null && value !== false);
	return <dl class="facts">{shown.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}
