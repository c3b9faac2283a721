// The end of a job's output, which is followed while the job runs.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Output, type Shown, whole } from "../core/output";
import { Failure } from "../core/session";
import { words } from "../words";
import { Card, Text } from "../ui/basics";
import { saveFile } from "../ui/table";

const w = words.outputView;

/** Name of a file, such as "stdout". */
type Stream = "stdout" | "stderr";

export function OutputCard({ label, over, separate }: { label: string; over: boolean; separate: boolean }) {
	const [stream, setStream] = useState<Stream>("stdout");
	const [shown, setShown] = useState<Shown>();
	const isOver = useRef(over);
	isOver.current = over;
	const operation = `job/${encodeURIComponent(label)}/${separate ? stream : "stdout"}`;
	useEffect(() => {
		setShown(undefined);
		const output = new Output(operation, () => isOver.current, setShown);
		return () => output.stop();
	}, [operation]);

	const box = useRef<HTMLPreElement>(null);
	const atEnd = useRef(true);
	useLayoutEffect(() => {
		if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
	}, [shown?.text]);

	const status = shown?.failure?.status ?? 0;
	if (!shown || !shown.known && status !== 0 && status !== 403 && status !== 404 && status < 500 || status === 501) return null; // not read here
	return (
		<Card title={words.jobView.output} wide note={shown.known && <Download operation={operation} name={`job-${label}.${separate ? stream : "stdout"}.txt`} />}>
			{separate && (
				<div class="segments" role="group" aria-label={w.which}>
					{(["stdout", "stderr"] as const).map((name) => <button key={name} type="button" aria-pressed={stream === name} onClick={() => { atEnd.current = true; setStream(name); }}>{w.streams[name]}</button>)}
				</div>
			)}
			{shown.failure && <p class="muted" role="status">{status === 403 ? w.denied : status !== 404 ? w.interrupted : over ? w.missing : w.notYet} <Text limit={1000}>{shown.failure.message}</Text></p>}
			{shown.known && shown.dropped && <p class="muted">{w.dropped}</p>}
			{shown.known && (shown.text === "" ? !shown.failure && <p class="muted">{w.empty}</p> : (
				<pre ref={box} class="source output" role="log" aria-live="off" aria-label={words.jobView.output} tabIndex={0} onScroll={(e) => { const at = e.currentTarget; atEnd.current = at.scrollHeight - at.scrollTop - at.clientHeight < 30; }}>{shown.text}</pre>
			))}
		</Card>
	);
}

function Download({ operation, name }: { operation: string; name: string }) {
	const [state, setState] = useState<"" | "busy" | Failure>("");
	const start = async () => {
		setState("busy");
		try {
			saveFile(name, await whole(operation));
			setState("");
		} catch (error) {
			setState(error instanceof Failure ? error : new Failure(0, words.noAnswer));
		}
	};
	return (
		<>
			<span role="status">{state instanceof Failure && <Text limit={200}>{state.message}</Text>}</span>{" "}
			<button type="button" class="small" aria-disabled={state === "busy"} onClick={() => state === "busy" || void start()}>{state === "busy" ? w.downloading : w.download}</button>
		</>
	);
}
