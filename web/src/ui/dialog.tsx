// Dialogs. The browser's own element keeps the focus inside, and closes at Escape.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { changeJob, changeNode, each, type JobAction, type NodeAction } from "../core/changes";
import { count } from "../core/format";
import { keepFocus } from "../core/hooks";
import { type Job, type Node, tasksIn } from "../core/records";
import type { Failure } from "../core/session";
import { words } from "../words";
import { State, Text } from "./basics";

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
	const dialog = useRef<HTMLDialogElement>(null);
	useEffect(() => {
		dialog.current!.showModal();
		return () => void window.setTimeout(keepFocus); // the browser gives it back to the control that opened the dialog, if that is still there
	}, []);
	return (
		<dialog ref={dialog} aria-label={title} onClose={onClose} onMouseDown={(e) => e.target === dialog.current && e.currentTarget.close()}>
			<div class="dialog">
				<header><h2>{title}</h2><button type="button" class="icon" aria-label={words.close} onClick={() => dialog.current!.close()}>×</button></header>
				{children}
			</div>
		</dialog>
	);
}

const LISTED = 100; // elements, and failures of further ones

/** What a change did. */
interface Results<T> {
	/** The results so far by name; an element has none while it has not been changed. */
	of: Map<string, Failure | "done">;
	/** For how many of what the question counts the failed elements stand. */
	failed: number;
	/** Failed elements that are not listed from the beginning. */
	more: T[];
}

interface ConfirmProps<T> {
	title: string;
	question: string;
	button: string;
	danger: boolean;
	list: T[];
	name: (one: T) => string;
	describe: (one: T) => ComponentChildren;
	/** For how many of what the question counts an element stands. */
	size?: (one: T) => number;
	change: (one: T) => Promise<void>;
	ready?: boolean;
	children?: ComponentChildren;
	onClose: Closed;
}

/** Called with whether changes have begun. */
type Closed = (changed: boolean) => void;

/** Asks before changes, names what will be changed, makes the changes, and shows the result of each. */
function Confirm<T>({ title, question, button, danger, list, name, describe, size = () => 1, change, ready = true, children, onClose }: ConfirmProps<T>) {
	const [results, setResults] = useState<Results<T>>();
	const whole = useMemo(() => list.reduce((n, one) => n + size(one), 0), [list]);
	const [stop] = useState(() => new AbortController());
	useEffect(() => () => stop.abort(), []); // also if the session ends
	const finished = results?.of.size === list.length;
	const closer = useRef<HTMLButtonElement>(null);
	useEffect(() => {
		if (finished && document.activeElement === document.body) closer.current!.focus(); // the button that started the changes is gone
	}, [finished]);
	const start = () => {
		const listed = new Set(list.slice(0, LISTED));
		const next: Results<T> = { of: new Map(), failed: 0, more: [] };
		setResults({ ...next });
		void each(list, change, (one, error) => {
			next.of.set(name(one), error ?? "done");
			if (error) next.failed += size(one);
			if (error && !listed.has(one) && next.more.length < LISTED) next.more.push(one);
			setResults({ ...next });
		}, stop.signal);
	};
	const lines = [...list.slice(0, LISTED), ...(results?.more ?? [])];
	return (
		<Dialog title={title} onClose={() => onClose(!!results)}>
			<p>{question}</p>
			<ul class="targets" tabIndex={0} aria-label={question}>
				{lines.map((one) => {
					const result = results?.of.get(name(one));
					return (
						<li key={name(one)}>
							<span class="target">{describe(one)}</span>
							{result === "done" && <State kind="done">{words.confirm.done}</State>}
							{result && result !== "done" && <span class="error"><State kind="failed"><Text limit={500}>{result.message}</Text></State></span>}
						</li>
					);
				})}
				{lines.length < list.length && <li key="others" class="muted">{words.confirm.others(count(whole - lines.reduce((n, one) => n + size(one), 0)))}</li>}
			</ul>
			{!results && children}
			<p role="status">{results && (finished ? words.confirm.finished(count(whole - results.failed), results.failed && count(results.failed)) : words.confirm.working(results.of.size, list.length))}</p>
			<footer>
				<button type="button" ref={closer} class={finished ? "primary" : ""} autofocus={!children} onClick={(e) => e.currentTarget.closest("dialog")!.close()}>{finished ? words.close : results ? words.confirm.stop : words.confirm.keep}</button>
				{!finished && <button type="button" class={danger ? "primary danger" : "primary"} disabled={!ready} aria-disabled={!!results} onClick={() => results || start()}>{button}</button>}
			</footer>
		</Dialog>
	);
}

export function ConfirmJobs({ action, jobs, onClose }: { action: JobAction; jobs: Job[]; onClose: Closed }) {
	const text = words.jobActions[action];
	const n = tasksIn(jobs);
	return (
		<Confirm title={text.title} question={text.question(count(n), n)} button={text.confirm(count(n), n)} danger={action === "cancel"} list={jobs}
			name={(job) => job.label} size={(job) => job.tasks} change={(job) => changeJob(action, job)} onClose={onClose}
			describe={(job) => <><b>{job.label}</b>{job.tasks > 1 && <> <span class="tag">{words.tasks(count(job.tasks))}</span></>} <Text limit={120}>{job.name}</Text> <span class="muted"><Text>{job.user}</Text></span></>} />
	);
}

export function ConfirmNodes({ action, nodes, onClose }: { action: NodeAction; nodes: Node[]; onClose: Closed }) {
	const [reason, setReason] = useState("");
	const text = words.nodeActions[action];
	return (
		<Confirm title={text.title} question={text.question(count(nodes.length), nodes.length)} button={text.confirm(count(nodes.length), nodes.length)} danger={action === "drain"} list={nodes}
			name={(node) => node.name} change={(node) => changeNode(action, node, reason.trim())} onClose={onClose}
			ready={action === "resume" || reason.trim() !== ""} describe={(node) => <b><Text>{node.name}</Text></b>}>
			{action === "drain" && (
				<label class="field">{words.nodeActions.reason}
					<input type="text" value={reason} maxLength={500} required autofocus onInput={(e) => setReason(e.currentTarget.value)} placeholder={words.nodeActions.reasonExample} />
				</label>
			)}
		</Confirm>
	);
}
