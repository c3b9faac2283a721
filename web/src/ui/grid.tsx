// The nodes as a grid on a canvas. Up to a few thousand nodes each have a cell;
// more are grouped by the beginning of their names. The table beside the grid
// has the same numbers as text.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../core/format";
import { href } from "../core/hooks";
import type { Node } from "../core/records";
import { nodeKinds, type Kind } from "../core/states";
import { visible } from "../core/format";
import { words } from "../words";

const MOST = 6000; // cells

interface Cell {
	name: string;
	kinds: Map<Kind, number>;
	nodes: number;
	/** Fraction of the processors in use. */
	used: number;
	reason: string;
}

/** Returns a cell for each node, or for each group if there are too many nodes. */
function cellsOf(nodes: Node[]): Cell[] {
	const sorted = [...nodes].sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
	for (let digits = 0; ; digits++) {
		const cells = new Map<string, Cell & { cpus: number; busy: number }>();
		for (const node of sorted) {
			const name = digits === 0 ? node.name : node.name.replace(new RegExp(`\\d{1,${digits}}(?=\\D*$)`), (d) => "×".repeat(d.length));
			let cell = cells.get(name);
			if (!cell) cells.set(name, (cell = { name, kinds: new Map(), nodes: 0, used: 0, reason: "", cpus: 0, busy: 0 }));
			cell.kinds.set(node.kind, (cell.kinds.get(node.kind) ?? 0) + 1);
			cell.nodes++;
			cell.cpus += node.cpus;
			cell.busy += node.usedCPUs;
			cell.used = cell.cpus > 0 ? cell.busy / cell.cpus : 0;
			cell.reason ||= node.reason;
		}
		if (cells.size <= MOST || digits === 9) return [...cells.values()].slice(0, MOST);
	}
}

/** Draws a cell. Each kind has a colour and a form. */
function draw(g: CanvasRenderingContext2D, cell: Cell, x: number, y: number, size: number, colour: (kind: Kind) => string): void {
	if (cell.nodes > 1) {
		let from = 0;
		for (const kind of nodeKinds) {
			const part = ((cell.kinds.get(kind) ?? 0) / cell.nodes) * size;
			if (part === 0) continue;
			g.fillStyle = colour(kind);
			g.fillRect(x, y + from, size, part);
			from += part;
		}
		return;
	}
	const [kind] = cell.kinds.keys();
	g.fillStyle = g.strokeStyle = colour(kind);
	const line = Math.max(1, size / 8);
	g.lineWidth = line;
	const outline = () => g.strokeRect(x + line / 2, y + line / 2, size - line, size - line);
	switch (kind) {
		case "allocated":
			g.fillRect(x, y, size, size);
			break;
		case "mixed": {
			const height = Math.max(line, Math.round(size * Math.min(1, cell.used)));
			outline();
			g.fillRect(x, y + size - height, size, height);
			break;
		}
		case "drained":
		case "draining":
			g.beginPath();
			g.moveTo(x + line / 2, y + line / 2);
			g.lineTo(x + size - line / 2, y + line / 2);
			g.lineTo(x + size / 2, y + size - line / 2);
			g.closePath();
			if (kind === "drained") g.fill();
			g.stroke();
			break;
		case "down":
			g.beginPath();
			g.moveTo(x + line, y + line);
			g.lineTo(x + size - line, y + size - line);
			g.moveTo(x + size - line, y + line);
			g.lineTo(x + line, y + size - line);
			g.lineWidth = line * 1.6;
			g.stroke();
			break;
		case "planned":
		case "reserved":
		case "maintenance":
		case "ending":
			outline();
			g.fillRect(x + size / 4, y + size / 2 - line / 2, size / 2, line);
			break;
		case "off":
			g.beginPath();
			g.arc(x + size / 2, y + size / 2, size / 3, -0.3 * Math.PI, 1.3 * Math.PI);
			g.moveTo(x + size / 2, y + line);
			g.lineTo(x + size / 2, y + size / 2);
			g.stroke();
			break;
		case "unknown":
			g.fillRect(x + size / 2 - line, y + size / 2 - line, 2 * line, 2 * line);
			break;
		default:
			outline();
	}
}

export function NodeGrid({ nodes, revision }: { nodes: Node[]; revision: number }) {
	const canvas = useRef<HTMLCanvasElement>(null);
	const box = useRef<HTMLDivElement>(null);
	const [width, setWidth] = useState(0);
	const [dark, setDark] = useState(false);
	const [at, setAt] = useState<{ cell: Cell; x: number; y: number }>();
	const cells = useMemo(() => cellsOf(nodes), [revision]);

	// The largest size of a cell with which the grid is at most so high.
	const height = 300;
	let pitch = 22;
	while (pitch > 4 && width > 0 && Math.ceil(cells.length / Math.floor(width / pitch)) * pitch > height) pitch--;
	const columns = Math.max(1, Math.floor(width / pitch));
	const rows = Math.ceil(cells.length / columns);
	const size = pitch - (pitch > 10 ? 3 : pitch > 5 ? 2 : 1);

	useEffect(() => {
		const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
		observer.observe(box.current!);
		const scheme = window.matchMedia("(prefers-color-scheme: dark)");
		const changed = () => setDark(scheme.matches);
		changed();
		scheme.addEventListener("change", changed);
		return () => {
			observer.disconnect();
			scheme.removeEventListener("change", changed);
		};
	}, []);

	useEffect(() => {
		const c = canvas.current!;
		const scale = window.devicePixelRatio || 1;
		c.width = columns * pitch * scale;
		c.height = rows * pitch * scale;
		const g = c.getContext("2d")!;
		g.scale(scale, scale);
		const style = getComputedStyle(c);
		const colours = new Map<Kind, string>();
		const colour = (kind: Kind) => {
			if (!colours.has(kind)) colours.set(kind, style.getPropertyValue(`--${kind}`).trim() || "gray");
			return colours.get(kind)!;
		};
		cells.forEach((cell, i) => draw(g, cell, (i % columns) * pitch, Math.floor(i / columns) * pitch, size, colour));
	}, [cells, columns, rows, pitch, dark]);

	const find = (event: MouseEvent) => {
		const bounds = canvas.current!.getBoundingClientRect();
		const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
		const column = Math.floor(x / pitch);
		const cell = column < columns ? cells[Math.floor(y / pitch) * columns + column] : undefined;
		return cell && { cell, x, y };
	};
	const describe = (cell: Cell) => [...cell.kinds].map(([kind, n]) => (cell.nodes > 1 ? `${count(n)} ${words.kinds[kind]}` : words.kinds[kind])).join(", ");
	const open = (event: MouseEvent) => {
		const found = find(event);
		if (found) location.hash = found.cell.nodes === 1 ? href(["node", found.cell.name]) : href(["nodes"], { q: found.cell.name.replace(/×.*$/, "") });
	};
	const grouped = cells.some((cell) => cell.nodes > 1);

	return (
		<div class="grid" ref={box}>
			<canvas ref={canvas} role="img" aria-label={words.grid.label(count(nodes.length))} style={{ width: `${columns * pitch}px`, height: `${rows * pitch}px` }}
				onMouseMove={(e) => setAt(find(e))} onMouseLeave={() => setAt(undefined)} onClick={open} />
			{at && (
				<div class="tip" style={{ left: `${Math.min(at.x + 12, Math.max(0, width - 220))}px`, top: `${at.y + 18}px` }}>
					<b>{visible(at.cell.name, 80)}</b> {describe(at.cell)}
					{at.cell.kinds.has("mixed") && at.cell.nodes === 1 && <>, {Math.round(100 * at.cell.used)} %</>}
					{at.cell.reason && <div>{visible(at.cell.reason, 120)}</div>}
				</div>
			)}
			{grouped && <p class="muted">{words.grid.grouped(count(cells.length))}</p>}
		</div>
	);
}
