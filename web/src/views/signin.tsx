// Signing in: a token is pasted, or dropped as a file or a text.
import { useEffect, useRef, useState } from "preact/hooks";
import { session, signIn } from "../core/session";
import { OtherClusters } from "../ui/basics";
import { words } from "../words";

export function SignIn() {
	const [busy, setBusy] = useState(false);
	const [problem, setProblem] = useState("");
	const [dropping, setDropping] = useState(false);
	const field = useRef<HTMLTextAreaElement>(null);
	const user = useRef<HTMLInputElement>(null);
	const keep = useRef<HTMLInputElement>(null);

	useEffect(() => field.current!.focus(), []); // the browser heeds autofocus only once

	const submit = async () => {
		if (busy) return;
		setBusy(true);
		setProblem("");
		try {
			await signIn(field.current!.value, user.current!.value, keep.current!.checked);
		} catch (error) {
			setProblem((error as Error).message);
			setBusy(false);
		}
	};
	const drop = async (event: DragEvent) => {
		event.preventDefault();
		setDropping(false);
		const file = event.dataTransfer?.files[0];
		const text = file ? (file.size < 65_536 ? await file.text() : "") : (event.dataTransfer?.getData("text") ?? "");
		field.current!.value = text.trim();
		await submit();
	};
	return (
		<main class={dropping ? "signin dropping" : "signin"} onDragOver={(e) => { e.preventDefault(); setDropping(true); }} onDragLeave={() => setDropping(false)} onDrop={drop}>
			<form onSubmit={(e) => { e.preventDefault(); void submit(); }} autocomplete="off">
				<h1>{words.signIn.title}</h1>
				<p role={session.notice ? "alert" : undefined}>{session.notice || words.signIn.intro}</p>
				<label class="field">{words.signIn.token}
					<textarea ref={field} class="secret" rows={3} required spellcheck={false} autocomplete="off" autocapitalize="off" placeholder={words.signIn.placeholder}
						onKeyDown={(e) => { if (e.key === "Enter") { e.preventDefault(); void submit(); } }} />
				</label>
				<p class="hint">{words.signIn.how} <code>scontrol token</code> {words.or} <code>schedctl token</code></p>
				<details>
					<summary>{words.signIn.more}</summary>
					<label class="field">{words.signIn.actAs}
						<input ref={user} type="text" spellcheck={false} autocomplete="off" autocapitalize="off" />
					</label>
					<label class="check"><input ref={keep} type="checkbox" /> <span>{words.signIn.keep}</span></label>
				</details>
				<p class="error" role="alert">{problem}</p>
				<button type="submit" class="primary" aria-disabled={busy}>{busy ? words.signIn.busy : words.signIn.button}</button>
			</form>
			<OtherClusters />
		</main>
	);
}
