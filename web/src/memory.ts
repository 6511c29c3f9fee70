// Memory of each device over time, against what it has, on the time axis of the timeline.

import { colour, on_theme_change, theme } from "./colours";
import type { Schedule } from "./data";
import { html, svg, unique } from "./dom";
import { bytes, time } from "./format";
import type { Viewport } from "./viewport";

const width = 900, height = 64, gutter = 132;

// The steps of one device that are in view, as points; of many within one pixel the largest.
export function visible_steps(times: number[], values: number[], from: number, to: number, pixels: number): [number, number][] {
  const result: [number, number][] = [];
  let before = values[0] ?? 0, column = -1, largest = 0;
  for (let i = 0; i < times.length && times[i]! <= to; ++i) {
    if (times[i]! <= from) {
      before = values[i]!;
      continue;
    }
    const at = Math.floor(((times[i]! - from) / (to - from)) * pixels);
    if (at === column) {
      largest = Math.max(largest, values[i]!);
      result[result.length - 1] = [result.at(-1)![0], largest];
    } else {
      result.push([times[i]!, values[i]!]);
      largest = values[i]!;
      column = at;
    }
  }
  return [[from, before], ...result];
}

export class Memory {
  readonly element: HTMLElement;

  constructor(private readonly schedule: Schedule, private readonly view: Viewport) {
    this.element = html("section", { class: "memory" });
    view.listen(() => this.draw());
    on_theme_change(() => this.draw());
    this.draw();
  }

  private draw(): void {
    const { devices, unit } = this.schedule, { from, to } = this.view;
    this.element.replaceChildren(html("h3", {}, "Memory"), ...devices.map((device, index) => {
      const peak = device.memory_bytes.reduce((most, value) => Math.max(most, value), 0);
      const top = Math.max(peak, device.memory || 0) || 1;
      const x = (value: number): number => gutter + ((value - from) / (to - from)) * (width - gutter);
      const y = (value: number): number => height - 4 - (value / top) * (height - 10);
      let path = `M${gutter} ${y(0)}`, last = 0;
      for (const [at, value] of visible_steps(device.memory_times, device.memory_bytes, from, to, width)) {
        path += `L${x(at).toFixed(1)} ${y(last).toFixed(1)}L${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
        last = value;
      }
      path += `L${width} ${y(last).toFixed(1)}L${width} ${y(0)}Z`;
      const id = unique("memory"), of = device.memory ? ` of ${bytes(device.memory)}` : "";
      const text = theme("text");
      return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": id, class: "chart" },
        svg("title", { id }, `${device.name}: at most ${bytes(peak)}${of}, from ${time(from, unit)} to ${time(to, unit)}`),
        svg("path", { d: path, fill: colour(index), opacity: 0.55 }),
        device.memory ? svg("line", { x1: gutter, x2: width, y1: y(device.memory), y2: y(device.memory), stroke: theme("chain"), "stroke-dasharray": "5 3" }) : "",
        svg("text", { x: 4, y: 24, fill: text, "font-size": 12 }, device.name),
        svg("text", { x: 4, y: 42, fill: text, "font-size": 10 }, `${bytes(peak)}${of}`));
    }));
  }
}
