// A table that renders only the rows in view, so that 20,000 rows scroll as
// smoothly as 20. It is a real table: a screen reader gets the number of
// rows, and the number of each row.
import { type ComponentChildren, render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { breathe } from "../core/breathe";
import { useMemory } from "../core/hooks";
import { words } from "../words";

const ROW = 34; // pixels, as in the style sheet
const BEYOND = 8; // rows rendered above and below those in view

export interface Column<T> {
	id: string;
	title: string;
	/** What the rows are sorted by: texts and numbers are compared as such. */
	sort?: (row: T) => string | number;
	cell: (row: T) => ComponentChildren;
	/** Numbers are aligned to the right. */
	number?: boolean;
	/** Whether a narrow screen has no place for the column. */
	optional?: boolean;
	class?: string;
}

interface Order {
	id: string;
	down: boolean;
}

interface Props<T> {
	caption: string;
	columns: Column<T>[];
	rows: T[];
	id: (row: T) => string | number;
	/** Address of the row's own view. */
	link?: (row: T) => string;
	order: Order;
	selected?: Set<string | number>;
	onSelect?: (selected: Set<string | number>) => void;
	empty: ComponentChildren;
	/** Rows at most this high; otherwise the table is as high as its rows. */
	tall?: boolean;
}

export function Table<T>({ caption, columns, rows, id, link, order: first, selected, onSelect, empty, tall }: Props<T>) {
	const place = useMemory(caption, { order: first, top: 0, row: 0 });
	const [order, setOrder] = useState(place.order);
	const box = useRef<HTMLDivElement>(null);
	const [view, setView] = useState({ from: 0, to: 40 });
	const [focus, setFocus] = useState(place.row);
	Object.assign(place, { order, row: focus });
	const [whole, setWhole] = useState(false); // all rows are rendered, to be printed

	const sorted = useMemo(() => {
		const by = columns.find((column) => column.id === order.id)?.sort;
		if (!by) return rows;
		const keys = rows.map((row, i) => ({ key: by(row), i }));
		const sign = order.down ? -1 : 1;
		keys.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.i - b.i));
		return keys.map(({ i }) => rows[i]);
	}, [rows, columns, order]);

	const measure = () => {
		const { scrollTop = 0, clientHeight = 800 } = box.current ?? {};
		const from = Math.max(0, Math.floor(scrollTop / ROW) - BEYOND);
		const to = Math.ceil((scrollTop + clientHeight) / ROW) + BEYOND;
		if (box.current) place.top = scrollTop; // an observer may report that the table is gone
		setView((old) => (old.from === from && old.to === to ? old : { from, to }));
	};
	useLayoutEffect(() => void (box.current!.scrollTop = place.top), []);
	useLayoutEffect(measure, [sorted.length]);
	useEffect(() => {
		const observer = new ResizeObserver(measure);
		observer.observe(box.current!);
		return () => observer.disconnect();
	}, []);

	useEffect(() => {
		const [before, after] = [() => setWhole(true), () => setWhole(false)];
		window.addEventListener("beforeprint", before);
		window.addEventListener("afterprint", after);
		return () => {
			window.removeEventListener("beforeprint", before);
			window.removeEventListener("afterprint", after);
		};
	}, []);
	const save = async () => saveFile(`${caption}.csv`, new Blob(["\ufeff", await csv(columns, sorted)], { type: "text/csv" }));

	const last = sorted.length - 1;
	const goTo = (row: number) => {
		const at = Math.max(0, Math.min(last, row));
		setFocus(at);
		const { current } = box;
		if (!current) return;
		const top = at * ROW;
		if (top < current.scrollTop) current.scrollTop = top;
		else if (top + 2 * ROW > current.scrollTop + current.clientHeight) current.scrollTop = top + 2 * ROW - current.clientHeight;
		measure();
		window.setTimeout(() => current.querySelector<HTMLElement>(`[data-row="${at}"]`)?.focus({ preventScroll: true }));
	};
	const key = (event: KeyboardEvent) => {
		const { row } = (event.target as HTMLElement).dataset; // new rows may have moved it since it got the focus
		if (!row) return;
		const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 400) / ROW) - 2);
		const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -last, End: last };
		if (event.key in steps) goTo(Number(row) + steps[event.key]);
		else if (event.key === " " && onSelect) toggle(sorted[Number(row)]);
		else return;
		event.preventDefault();
	};
	const toggle = (row: T) => {
		const next = new Set(selected);
		if (!next.delete(id(row))) next.add(id(row));
		onSelect!(next);
	};

	const sortBy = (column: Column<T>) => setOrder((old) => ({ id: column.id, down: old.id === column.id ? !old.down : !!column.number }));
	const from = whole ? 0 : Math.min(view.from, Math.max(0, last));
	const shown = sorted.slice(from, whole ? undefined : view.to);
	const below = Math.max(0, sorted.length - from - shown.length);
	const active = Math.max(from, Math.min(focus, from + shown.length - 1)); // Tab leads to it, so it must be rendered
	const width = columns.length + (onSelect ? 1 : 0);

	return (
		<>
		{tall && sorted.length > 0 && <button type="button" class="small csv" title={words.csvTitle} onClick={save}>{words.csv}</button>}
		<div class={tall ? "table tall" : "table"} ref={box} onScroll={measure} onKeyDown={key} tabIndex={sorted.length === 0 ? 0 : -1} role={tall ? "region" : undefined} aria-label={tall ? caption : undefined}>
			<table aria-rowcount={sorted.length + 1}>
				<caption class="hidden">{caption}</caption>
				<thead>
					<tr aria-rowindex={1}>
						{onSelect && (
							<th scope="col" class="select">
								<input type="checkbox" aria-label={words.table.selectAll} checked={sorted.length > 0 && sorted.every((row) => selected!.has(id(row)))}
									onChange={(e) => onSelect(new Set(e.currentTarget.checked ? sorted.map(id) : []))} />
							</th>
						)}
						{columns.map((column) => (
							<th key={column.id} scope="col" class={classOf(column)} aria-sort={order.id === column.id ? (order.down ? "descending" : "ascending") : undefined}>
								{column.sort ? <button type="button" onClick={() => sortBy(column)}>{column.title}<span class="arrow" aria-hidden="true">{order.id === column.id ? (order.down ? "↓" : "↑") : ""}</span></button> : column.title}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{from > 0 && <tr class="space" aria-hidden="true"><td colSpan={width} style={{ height: `${from * ROW}px` }} /></tr>}
					{shown.map((row, i) => {
						const number = from + i;
						const chosen = selected?.has(id(row));
						return (
							<tr key={id(row)} aria-rowindex={number + 2} class={chosen ? "chosen" : ""}>
								{onSelect && (
									<td class="select"><input type="checkbox" tabIndex={-1} checked={chosen} aria-label={words.table.select(String(id(row)))} onChange={() => toggle(row)} /></td>
								)}
								{columns.map((column, c) => {
									const content = column.cell(row);
									if (c > 0) return <td key={column.id} class={classOf(column)}>{content}</td>;
									return (
										<th key={column.id} scope="row" class={classOf(column)}>
											{link
												? <a href={link(row)} data-row={number} tabIndex={number === active ? 0 : -1} onFocus={() => setFocus(number)}>{content}</a>
												: <span data-row={number} tabIndex={number === active ? 0 : -1} onFocus={() => setFocus(number)}>{content}</span>}
										</th>
									);
								})}
							</tr>
						);
					})}
					{below > 0 && <tr class="space" aria-hidden="true"><td colSpan={width} style={{ height: `${below * ROW}px` }} /></tr>}
				</tbody>
			</table>
			{sorted.length === 0 && empty}
		</div>
		</>
	);
}

/** Returns the rows of a table as comma-separated values. It renders them outside the page, a row at a time, so that the page stays responsive. */
async function csv<T>(columns: Column<T>[], rows: T[]): Promise<string> {
	const lines = [columns.map((column) => quote(column.title)).join(",")];
	const line = document.createElement("tr");
	for (const row of rows) {
		render(columns.map((column) => <td>{column.cell(row)}</td>), line);
		lines.push([...line.cells].map((cell, i) => {
			for (const cut of cell.querySelectorAll<HTMLElement>("bdi[title]")) cut.textContent = cut.title;
			const shown = cell.querySelector("time")?.dateTime ?? (cell.querySelector(".wide") ?? cell).textContent!.trim();
			return quote(columns[i].number ? shown.replace(/(?<=\d),(?=\d{3})/g, "") : shown);
		}).join(","));
		render(null, line);
		await breathe();
	}
	return lines.join("\r\n") + "\r\n";
}

const quote = (text: string) => `"${text.replace(/^[=+@\t-](?![\d.]+$)/, "'$&").replace(/"/g, '""')}"`; // a spreadsheet would carry out a name such as =cmd()

/** Lets the browser save a file. */
export function saveFile(name: string, content: Blob): void {
	const address = URL.createObjectURL(content);
	Object.assign(document.createElement("a"), { href: address, download: name }).click();
	window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

const classOf = (column: Column<any>) => [column.class, column.number && "number", column.optional && "optional"].filter(Boolean).join(" ");
