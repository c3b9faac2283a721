// Dialogs. The browser's own element keeps the focus inside, and closes at Escape.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { changeJob, changeNode, each, type JobAction, type NodeAction } from "../core/changes";
import { count } from "../core/format";
import { type Job, type Node, tasksIn } from "../core/records";
import type { Failure } from "../core/session";
import { words } from "../words";
import { State, Text } from "./basics";

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
	const dialog = useRef<HTMLDialogElement>(null);
	useEffect(() => {
		dialog.current!.showModal();
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

/** What a change did to one job or node; no entry while it has not been made. */
type Results = Map<string, Failure | "done">;

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
	onClose: () => void;
}

/** Asks before changes, names what will be changed, makes the changes, and shows the result of each. */
function Confirm<T>({ title, question, button, danger, list, name, describe, size = () => 1, change, ready = true, children, onClose }: ConfirmProps<T>) {
	const [results, setResults] = useState<Results>();
	const [stop] = useState(() => new AbortController());
	useEffect(() => () => stop.abort(), []); // also if the session ends
	const finished = results?.size === list.length;
	const sum = (of: T[]) => of.reduce((n, one) => n + size(one), 0);
	const failed = sum(list.filter((one) => (results?.get(name(one)) ?? "done") !== "done"));
	const start = () => {
		setResults(new Map());
		void each(list, change, (one, error) => setResults((old) => new Map(old).set(name(one), error ?? "done")), stop.signal);
	};
	return (
		<Dialog title={title} onClose={onClose}>
			<p>{question}</p>
			<ul class="targets" tabIndex={0} aria-label={question}>
				{list.map((one) => {
					const result = results?.get(name(one));
					return (
						<li key={name(one)}>
							<span class="target">{describe(one)}</span>
							{result === "done" && <State kind="done">{words.confirm.done}</State>}
							{result && result !== "done" && <span class="error"><State kind="failed"><Text limit={500}>{result.message}</Text></State></span>}
						</li>
					);
				})}
			</ul>
			{!results && children}
			<p role="status">{results && (finished ? words.confirm.finished(count(sum(list) - failed), failed && count(failed)) : words.confirm.working(results.size, list.length))}</p>
			<footer>
				{finished ? <button type="button" class="primary" onClick={onClose}>{words.close}</button> : (
					<>
						<button type="button" autofocus={!children} onClick={onClose}>{results ? words.confirm.stop : words.confirm.keep}</button>
						<button type="button" class={danger ? "primary danger" : "primary"} disabled={!!results || !ready} onClick={start}>{button}</button>
					</>
				)}
			</footer>
		</Dialog>
	);
}

export function ConfirmJobs({ action, jobs, onClose }: { action: JobAction; jobs: Job[]; onClose: () => void }) {
	const text = words.jobActions[action];
	const n = tasksIn(jobs);
	return (
		<Confirm title={text.title} question={text.question(count(n), n)} button={text.confirm(count(n), n)} danger={action === "cancel"} list={jobs}
			name={(job) => job.label} size={(job) => job.tasks} change={(job) => changeJob(action, job)} onClose={onClose}
			describe={(job) => <><b>{job.label}</b>{job.tasks > 1 && <> <span class="tag">{words.tasks(count(job.tasks))}</span></>} <Text limit={120}>{job.name}</Text> <span class="muted"><Text>{job.user}</Text></span></>} />
	);
}

export function ConfirmNodes({ action, nodes, onClose }: { action: NodeAction; nodes: Node[]; onClose: () => void }) {
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
