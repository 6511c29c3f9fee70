// Lines, bands and dots on two axes, as SVG, which prints and can be saved.

import { colour, theme } from "./colours";
import { html, svg, unique } from "./dom";
import { ticks } from "./format";

export interface Series {
  name: string;
  x: number[];
  y: (number | null)[];
  low?: (number | null)[]; // a band around the line
  high?: (number | null)[];
  dots?: boolean; // instead of a line
  labels?: string[]; // of dots, shown on hover
}
export interface Chart {
  title: string;
  x: string;
  y: string;
  series: Series[];
  marks?: { x: number; text: string }[]; // upright lines
  diagonal?: boolean; // both axes alike, with y = x
  format_x?: (value: number) => string;
  format_y?: (value: number) => string;
  from_zero?: boolean;
}

const width = 720, height = 320, left = 78, right = 14, top = 12, bottom = 44;

const finite = (values: (number | null | undefined)[]): number[] =>
  values.filter((value): value is number => typeof value === "number" && Number.isFinite(value));

function range(values: number[], from_zero: boolean): [number, number] {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  if (from_zero) low = Math.min(0, low);
  const margin = (high - low || Math.abs(high) || 1) * 0.04;
  return [from_zero && low === 0 ? 0 : low - margin, high + margin];
}

// At most so many points of a line are drawn: of each part its least and its largest.
function thinned(x: number[], y: (number | null)[], most = 1200): number[] {
  if (x.length <= most) return x.map((_, i) => i);
  const kept: number[] = [], size = x.length / (most / 2);
  for (let part = 0; part < most / 2; ++part) {
    let least = -1, largest = -1;
    for (let i = Math.floor(part * size); i < Math.min(x.length, Math.floor((part + 1) * size)); ++i) {
      const value = y[i];
      if (typeof value !== "number") continue;
      if (least < 0 || value < y[least]!) least = i;
      if (largest < 0 || value > y[largest]!) largest = i;
    }
    for (const i of least < largest ? [least, largest] : [largest, least]) if (i >= 0 && kept.at(-1) !== i) kept.push(i);
  }
  return kept;
}

export function chart(spec: Chart): HTMLElement {
  const xs = finite(spec.series.flatMap((series) => series.x));
  const ys = finite(spec.series.flatMap((series) => [...series.y, ...(series.low ?? []), ...(series.high ?? [])]));
  let [x0, x1] = range(xs, false), [y0, y1] = range(ys, spec.from_zero ?? false);
  if (spec.diagonal) {
    x0 = y0 = Math.min(x0, y0);
    x1 = y1 = Math.max(x1, y1);
  }
  const at_x = (value: number): number => left + ((value - x0) / (x1 - x0)) * (width - left - right);
  const at_y = (value: number): number => height - bottom - ((value - y0) / (y1 - y0)) * (height - top - bottom);
  const point = (x: number, y: number): string => `${at_x(x).toFixed(1)},${at_y(y).toFixed(1)}`;
  const format_x = spec.format_x ?? ((value: number) => String(Number(value.toPrecision(6))));
  const format_y = spec.format_y ?? ((value: number) => String(Number(value.toPrecision(6))));
  const grid = theme("grid"), text = theme("text"), parts: SVGElement[] = [];
  for (const tick of ticks(y0, y1, 5)) {
    parts.push(svg("line", { x1: left, x2: width - right, y1: at_y(tick), y2: at_y(tick), stroke: grid }));
    parts.push(svg("text", { x: left - 6, y: at_y(tick) + 4, "text-anchor": "end", fill: text }, format_y(tick)));
  }
  for (const tick of ticks(x0, x1, 6))
    parts.push(svg("text", { x: at_x(tick), y: height - bottom + 18, "text-anchor": "middle", fill: text }, format_x(tick)));
  parts.push(svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle", fill: text }, spec.x));
  parts.push(svg("text", { x: 14, y: (top + height - bottom) / 2, "text-anchor": "middle", fill: text,
    transform: `rotate(-90 14 ${(top + height - bottom) / 2})` }, spec.y));
  if (spec.diagonal)
    parts.push(svg("line", { x1: at_x(x0), y1: at_y(y0), x2: at_x(x1), y2: at_y(y1), stroke: text, "stroke-dasharray": "4 4" }));
  for (const mark of spec.marks ?? []) {
    const line = svg("line", { x1: at_x(mark.x), x2: at_x(mark.x), y1: top, y2: height - bottom, stroke: text, "stroke-dasharray": "2 3", class: "mark" },
      svg("title", {}, mark.text));
    parts.push(line);
  }
  spec.series.forEach((series, index) => {
    const shade = colour(index);
    if (series.low && series.high) {
      const kept = thinned(series.x, series.high).filter((i) => series.low![i] != null && series.high![i] != null);
      const upper = kept.map((i) => point(series.x[i]!, series.high![i]!));
      const lower = kept.map((i) => point(series.x[i]!, series.low![i]!)).reverse();
      if (kept.length > 1) parts.push(svg("polygon", { points: [...upper, ...lower].join(" "), fill: shade, opacity: 0.18 }));
    }
    if (series.dots) {
      series.x.forEach((x, i) => {
        const y = series.y[i];
        if (typeof y !== "number") return;
        parts.push(svg("circle", { cx: at_x(x).toFixed(1), cy: at_y(y).toFixed(1), r: 3.2, fill: shade, "fill-opacity": 0.75 },
          svg("title", {}, series.labels?.[i] ?? `${series.name}: ${format_x(x)}, ${format_y(y)}`)));
      });
      return;
    }
    let path = "", begun = false;
    for (const i of thinned(series.x, series.y)) {
      const y = series.y[i];
      if (typeof y === "number") path += `${begun ? "L" : "M"}${point(series.x[i]!, y)}`;
      begun = typeof y === "number";
    }
    const drawn = series.y.flatMap((y, i) => (typeof y === "number" ? [i] : []));
    if (drawn.length === 1) // a line of one point would be invisible
      parts.push(svg("circle", { cx: at_x(series.x[drawn[0]!]!).toFixed(1), cy: at_y(series.y[drawn[0]!]!).toFixed(1), r: 3.2, fill: shade }));
    parts.push(svg("path", { d: path, fill: "none", stroke: shade, "stroke-width": 1.8 }));
  });
  const id = unique("chart");
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": id, class: "chart" },
    svg("title", { id }, spec.title), ...parts);
  const legend = spec.series.map((series, index) => {
    const swatch = html("span", { class: "swatch", "aria-hidden": true });
    swatch.style.background = colour(index);
    return html("li", {}, swatch, series.name);
  });
  return html("figure", {}, html("figcaption", {}, spec.title), drawing,
    spec.series.length > 1 ? html("ul", { class: "legend" }, ...legend) : "");
}
