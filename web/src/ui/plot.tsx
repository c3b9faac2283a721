// Plots of the last hour, as far as the page has seen it.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { words } from "../words";

export interface Series {
	title: string;
	/** Name of the colour in the style sheet. */
	colour: string;
	values: (number | null)[];
	dash?: number[];
	fill?: boolean;
}

const HEIGHT = 150; // pixels

interface Props {
	label: string;
	times: number[];
	series: Series[];
	format: (n: number) => string;
	/** Highest value of the scale; by default that of the data. */
	top?: number;
}

export function Plot({ label, times, series, format, top }: Props) {
	const box = useRef<HTMLDivElement>(null);
	const plot = useRef<uPlot>(null);
	const shown = useRef(times);
	shown.current = times;
	const [scheme, setScheme] = useState(0);

	useEffect(() => {
		const dark = window.matchMedia("(prefers-color-scheme: dark)");
		const changed = () => setScheme((n) => n + 1);
		dark.addEventListener("change", changed);
		return () => dark.removeEventListener("change", changed);
	}, []);

	useEffect(() => {
		const style = getComputedStyle(box.current!);
		const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
		const font = `11px ${style.fontFamily}`;
		const axis = { stroke: colour("muted"), font, grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
		const made = new uPlot({
			width: box.current!.clientWidth || 300, height: HEIGHT,
			cursor: { drag: { x: false, y: false }, points: { size: 6 } },
			legend: { show: false },
			scales: {
				x: { time: true, range: () => [Math.min(shown.current[0], shown.current[shown.current.length - 1] - 600), shown.current[shown.current.length - 1]] },
				y: { range: (_, _low, high) => [0, top ?? Math.max(4, Math.ceil((high ?? 0) * 1.15))] },
			},
			axes: [
				{ ...axis, space: 70, size: 26, values: (_, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString(words.locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" })) },
				{ ...axis, size: 46, space: 24, values: (_, ticks) => ticks.map((n) => (top === undefined && n % 1 ? "" : format(n))) },
			],
			series: [
				{},
				...series.map((s) => ({
					label: s.title, stroke: colour(s.colour), width: 1.75, dash: s.dash, points: { show: () => shown.current.length < 2, size: 5 },
					fill: s.fill ? colour(`${s.colour}-soft`) : undefined, paths: uPlot.paths.stepped!({ align: 1 }),
				})),
			],
		}, [times, ...series.map((s) => s.values)] as uPlot.AlignedData, box.current!);
		plot.current = made;
		const observer = new ResizeObserver(([entry]) => made.setSize({ width: Math.floor(entry.contentRect.width), height: HEIGHT }));
		observer.observe(box.current!);
		return () => {
			observer.disconnect();
			made.destroy();
		};
	}, [scheme]);

	useEffect(() => {
		plot.current?.setData([times, ...series.map((s) => s.values)] as uPlot.AlignedData);
	}, [times]);

	const last = (s: Series) => s.values[s.values.length - 1];
	return (
		<figure class="plot">
			<figcaption>
				{series.map((s) => (
					<span key={s.title} class="key">
						<svg width="18" height="8" aria-hidden="true"><line x1="0" y1="4" x2="18" y2="4" stroke={`var(--${s.colour})`} stroke-width="2" stroke-dasharray={s.dash?.join(" ")} /></svg>
						{s.title} <b>{last(s) === undefined || last(s) === null ? "–" : format(last(s)!)}</b>
					</span>
				))}
			</figcaption>
			<div ref={box} role="img" aria-label={label} />
		</figure>
	);
}
