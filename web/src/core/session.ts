// The session: where the gateway is, which of its paths and versions the page
// uses, and the token. The token is in this module's memory, and in
// sessionStorage only if the user has asked for that. It is never in a URL.
import { words } from "../words";
import { now, setClock } from "./clock";
import { setZone } from "./zone";

/** The versions of the API whose fields this page knows, the newest first. */
const VERSIONS = ["v0.0.45", "v0.0.44", "v0.0.43"];

/** Directory of the gateway, which a proxy may have put below another path. */
const base = location.pathname.replace(/\/status\/?$/, "");

/** Where the browser keeps the token. Other clusters behind the same proxy must not get it. */
const STORED = "schedrestd-status-token" + base;

/** The state of the session. */
export type Phase = "starting" | "signed out" | "signed in" | "failed";

export interface Session {
	phase: Phase;
	/** Sentence about why the page asks for a token, or can't start. */
	notice: string;
	/** Name of the user, from an answer of the gateway. */
	user: string;
	cluster: string;
	release: string;
	/** Whether a token of this page authenticates the user; otherwise a proxy or a socket does. */
	byToken: boolean;
	/** When the token expires, in seconds since 1970; 0 if it does not or no token is used. */
	expires: number;
	version: string;
	/** Whether the gateway serves accounting, and the user may read it. */
	accounting: boolean;
	/** Other clusters of the site: the name of each, and the address of its page. */
	others: [string, string][];
	/** What the token, or the address of the gateway, permits; undefined if that is everything. */
	scopes?: string[];
}

export const session: Session = {
	phase: "starting", notice: "", user: "", cluster: "", release: "", byToken: false, expires: 0, version: "", accounting: false, others: [],
};

let token = "";
let actAs = "";
let spelling = "sched";
let accounting = false; // whether the gateway serves it
const listeners = new Set<() => void>();
const endings = new Set<() => void>();

/** Calls a function after each change of the session, until the returned function is called. */
export function onSession(listener: () => void): () => void {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

/** Calls a function whenever a session ends, so that the data of its user is forgotten. */
export function onEnd(listener: () => void): void {
	endings.add(listener);
}

function set(changes: Partial<Session>): void {
	Object.assign(session, changes);
	for (const listener of listeners) listener();
}

/** An error answer of the gateway, or the lack of an answer (status 0). */
export class Failure extends Error {
	constructor(readonly status: number, message: string, readonly code = "", readonly number = 0, readonly retryAfter = 0, readonly source = "") {
		super(message);
	}
}

/** Which daemon an operation is for. */
export type Daemon = "controller" | "accounting";

/** Returns the path of an operation on this server. */
export function path(daemon: Daemon, operation: string): string {
	return `${base}/${spelling}${daemon === "accounting" ? "db" : ""}/${session.version}/${operation}`;
}

/** Returns whether the gateway serves its own paths, and not only those of slurmrestd. */
export const ownPaths = (): boolean => spelling === "sched";

/** Returns the headers that authenticate a request. */
function credentials(): Record<string, string> {
	const prefix = spelling === "slurm" ? "X-SLURM-USER-" : "X-SCHED-USER-";
	return { ...(token && { [prefix + "TOKEN"]: token }), ...(actAs && { [prefix + "NAME"]: actAs }) };
}

/** Returns the name of the header that contains the token. */
export function tokenHeader(): string {
	return spelling === "slurm" ? "X-SLURM-USER-TOKEN" : "X-SCHED-USER-TOKEN";
}

/**
 * Sends a request and returns the response, whatever its status. Throws a
 * Failure with status 0 if there is no response. A 401 ends the session.
 */
export async function send(url: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Response> {
	const [sent, at] = [token, performance.now()];
	let response: Response;
	try {
		response = await fetch(url, { cache: "no-store", redirect: "error", ...init, headers: { ...credentials(), ...init.headers } });
	} catch (error) {
		if (init.signal?.aborted) throw error;
		throw new Failure(0, words.noAnswer);
	}
	setClock(response.headers.get("Date"), at);
	if (response.status === 401 && session.phase === "signed in" && sent === token) {
		const expired = session.expires > 0 && now() / 1000 > session.expires - 1; // the page's own timer may be a second late
		end(expired ? words.signIn.expired : words.tokenRefused);
	}
	return response;
}

/** Returns the Failure that an error answer describes. */
export async function failure(response: Response): Promise<Failure> {
	const retryAfter = Number(response.headers.get("Retry-After")) || 0;
	try {
		const first = (await response.json()).errors[0];
		return new Failure(response.status, first.description || first.error, first.code, first.error_number, retryAfter, first.source);
	} catch {
		return new Failure(response.status, words.badAnswer(response.status), "", 0, retryAfter);
	}
}

/** Returns a JSON answer of an operation, or throws a Failure. */
export async function call<T>(daemon: Daemon, operation: string, init: { method?: string; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {}): Promise<T> {
	const headers: Record<string, string> = { Accept: "application/json", ...init.headers };
	if (init.body !== undefined) headers["Content-Type"] = "application/json";
	const response = await send(path(daemon, operation), {
		method: init.method ?? "GET", headers, signal: init.signal, body: init.body === undefined ? undefined : JSON.stringify(init.body),
	});
	if (!response.ok) throw await failure(response);
	return await response.json();
}

/** What the gateway calls the permission for a kind of operations. */
export type Scope = "compute.create" | "compute.modify" | "compute.cancel" | "slurmdb.read" | "cluster.admin";

/** Returns whether the token and the address of the gateway permit operations of this scope. The daemons may still refuse them. */
export const permits = (scope: Scope): boolean => session.scopes?.includes(scope) ?? true;

interface Greeting {
	meta: { client: { user: string }; [product: string]: any };
}

/** Asks the gateway who the user is. Returns false if a token is needed. */
async function greet(): Promise<boolean> {
	const response = await send(path("controller", "ping/"), { headers: { Accept: "application/json" } });
	if (response.status === 401) return false;
	if (!response.ok) throw await failure(response);
	const { meta } = (await response.json()) as Greeting;
	const product = meta[spelling] ?? {};
	session.scopes = response.headers.get("X-OAuth-Scopes")?.split(", ");
	session.accounting = accounting && permits("slurmdb.read");
	set({ phase: "signed in", notice: "", user: meta.client.user, cluster: product.cluster ?? "", release: product.release ?? "", byToken: token !== "", expires: expiry(token) });
	return true;
}

/** Returns whether the gateway has a path. The request needs no token. */
async function serves(path: string): Promise<boolean> {
	return (await send(path, { method: "OPTIONS" })).ok;
}

/** The other clusters in a list of names and addresses of gateways. */
function others(list: [string, string][]): [string, string][] {
	return list.filter(([, url]) => /^https?:\/\//.test(url) && url !== location.origin + base).map(([name, url]) => [name, url + "/status"]);
}

/** Finds out what the gateway serves, and signs in without a token, or with the stored one. */
export async function start(): Promise<void> {
	try {
		const response = await send(base + "/meta/versions", { headers: { Accept: "application/json" } });
		if (!response.ok) throw await failure(response);
		const { versions } = (await response.json()) as { versions: string[] };
		const version = VERSIONS.find((known) => versions.includes(known));
		if (!version) throw new Failure(0, words.noVersion(VERSIONS[VERSIONS.length - 1]));
		session.version = version;
		if (!(await serves(path("controller", "ping/")))) {
			spelling = "slurm";
			if (!(await serves(path("controller", "ping/")))) throw new Failure(0, words.noController);
		}
		const zone = await send(base + "/status/zone.json");
		if (zone.ok) setZone(await zone.json());
		const clusters = await send(base + "/status/clusters.json");
		if (clusters.ok) session.others = others(await clusters.json());
		accounting = await serves(path("accounting", "qos/"));
		token = sessionStorage.getItem(STORED) ?? "";
		if (await greet()) return;
		forget();
		set({ phase: "signed out" });
	} catch (error) {
		set({ phase: "failed", notice: (error as Error).message });
	}
}

/**
 * Signs in with a token, as the user of the token or, with a token of an
 * administrator, as another user. Throws a Failure if that is refused.
 */
export async function signIn(given: string, user: string, keep: boolean): Promise<void> {
	const text = given.trim().replace(/^(export\s+)?(SCHED|SLURM)_JWT=|^X-(SCHED|SLURM)-USER-TOKEN:\s*|^Authorization:\s*Bearer\s+/i, "").trim();
	if (!/^[\x21-\x7e]+$/.test(text)) throw new Failure(0, words.noToken);
	[token, actAs] = [text, user.trim()];
	try {
		if (!(await greet())) throw new Failure(401, words.tokenNotAccepted);
	} catch (error) {
		[token, actAs] = ["", ""];
		throw error;
	}
	if (keep && !actAs) sessionStorage.setItem(STORED, text);
}

function forget(): void {
	[token, actAs] = ["", ""];
	sessionStorage.removeItem(STORED);
}

/** Forgets the token and everything that the page has read with it. */
export function end(notice = ""): void {
	forget();
	set({ phase: "signed out", notice, user: "", byToken: false, expires: 0 });
	for (const ending of endings) ending();
}

/** Returns when a token expires, in seconds since 1970, or 0 if it does not say so. The gateway checks this, not the page. */
function expiry(token: string): number {
	try {
		const part = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
		const { exp } = JSON.parse(atob(part));
		return typeof exp === "number" ? exp : 0;
	} catch {
		return 0;
	}
}
