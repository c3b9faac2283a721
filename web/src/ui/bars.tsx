// A plot of stacked bars, as SVG, which is also printed well. The numbers must be
// in a table beside it: for a screen reader the plot is a picture.
import { useEffect, useId, useRef, useState } from "preact/hooks";

export interface Part {
	title: string;
	/** Name of the colour in the style sheet. */
	colour: string;
	/** Of each bar. */
	values: number[];
}

interface Props {
	title: string;
	/** A sentence for those who do not see the plot. */
	summary: string;
	/** Below each bar; a second line is shown only if there is one. */
	labels: [string, string?][];
	parts: Part[];
	format: (n: number) => string;
}

const [HEIGHT, LEFT, TOP, BOTTOM] = [260, 64, 10, 40]; // pixels

/** Returns the distance of about four round marks up to a number. */
export function step(top: number): number {
	const rough = top / 4;
	const power = 10 ** Math.floor(Math.log10(rough));
	return power * [1, 2, 2.5, 5, 10].find((n) => n * power >= rough * (1 - 1e-9))!;
}

export function Bars({ title, summary, labels, parts, format }: Props) {
	const box = useRef<HTMLDivElement>(null);
	const [width, setWidth] = useState(720);
	const id = useId();
	useEffect(() => {
		const observer = new ResizeObserver(([entry]) => {
			if (entry.contentRect.width > 0 && !matchMedia("print").matches) setWidth(Math.round(entry.contentRect.width));
		});
		observer.observe(box.current!);
		return () => observer.disconnect();
	}, []);
	const totals = labels.map((_, i) => parts.reduce((sum, part) => sum + part.values[i], 0));
	const distance = step(Math.max(...totals, 1e-6));
	const top = Math.max(1, Math.ceil(Math.max(...totals) / distance - 1e-9)) * distance;
	const height = HEIGHT - TOP - BOTTOM;
	const y = (n: number) => TOP + height * (1 - n / top);
	const each = (width - LEFT) / labels.length;
	const bar = Math.min(56, each * 0.72);
	const every = Math.ceil(34 / each); // labels that would overlap are left out
	const marks = Array.from({ length: Math.round(top / distance) + 1 }, (_, i) => i * distance);
	return (
		<figure class="plot">
			<figcaption>
				{parts.map((part) => (
					<span key={part.title} class="key"><svg width="10" height="10" aria-hidden="true"><rect width="10" height="10" rx="2" fill={`var(--${part.colour})`} /></svg><bdi>{part.title}</bdi></span>
				))}
			</figcaption>
			<div ref={box}>
				<svg class="bars" viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-labelledby={`${id}t ${id}d`}>
					<title id={`${id}t`}>{title}</title>
					<desc id={`${id}d`}>{summary}</desc>
					{marks.map((n) => (
						<g key={n}>
							<line x1={LEFT} x2={width} y1={y(n)} y2={y(n)} class={n === 0 ? "base" : ""} />
							<text x={LEFT - 8} y={y(n) + 4} text-anchor="end">{format(n)}</text>
						</g>
					))}
					{labels.map(([label, more], i) => {
						let below = 0;
						const middle = LEFT + each * (i + 0.5);
						return (
							<g key={i}>
								{parts.map((part) => {
									const [from, to] = [below, (below += part.values[i])];
									if (to <= from) return null;
									return <rect key={part.title} x={middle - bar / 2} width={bar} y={y(to)} height={Math.max(1, y(from) - y(to))} fill={`var(--${part.colour})`}><title>{`${[label, more].filter(Boolean).join(" ")}, ${part.title}: ${format(part.values[i])}`}</title></rect>;
								})}
								{(labels.length - 1 - i) % every === 0 && <text x={middle} y={HEIGHT - BOTTOM + 17} text-anchor="middle">{label}</text>}
								{more && <text x={middle} y={HEIGHT - BOTTOM + 33} text-anchor="middle">{more}</text>}
							</g>
						);
					})}
				</svg>
			</div>
		</figure>
	);
}
