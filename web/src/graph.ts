// The graph: modules as boxes in the order of data, coloured by the devices of their ops. A module opens by a click or
// Enter, so that 10^5 ops are a few hundred boxes at any time.

import { colour, ink, on_theme_change, theme } from "./colours";
import type { Schedule } from "./data";
import { button, html, svg } from "./dom";
import { count, time } from "./format";

const most_boxes = 240, box_width = 128, box_height = 34, gap_x = 46, gap_y = 12;

interface Group {
  name: string;
  ops: number[];
  depth: number;
}

export interface Drawing {
  groups: Group[];
  edges: [number, number, number][]; // from, to, how many tensors
}

// How far each op is from the sources.
export function depths(schedule: Schedule): Uint32Array {
  const { ops } = schedule, depth = new Uint32Array(ops.name.length);
  const order = [...depth.keys()].sort((a, b) => ops.start[a]! - ops.start[b]! || ops.end[a]! - ops.end[b]!);
  for (let pass = 0, changed = true; changed && pass < 4; ++pass) { // ops that take no time may be out of order
    changed = false;
    for (const op of order)
      for (let i = ops.input_begin[op]!; i < ops.input_begin[op + 1]!; ++i) {
        const deeper = depth[ops.input[i]!]! + 1;
        if (deeper > depth[op]!) {
          depth[op] = deeper;
          changed = true;
        }
      }
  }
  return depth;
}

const path = (name: string): string[] => name.split(/[/.]/).filter((part) => part !== "");

// The ops as groups: by the first parts of their names, as many parts as leave few enough groups; opened modules show
// what is in them. Ops without modules are grouped by their depth.
export function grouped(schedule: Schedule, opened: Set<string>, most = most_boxes): Drawing {
  const { ops } = schedule, paths = ops.name.map(path), depth = depths(schedule);
  const deepest = depth.reduce((a, b) => Math.max(a, b), 0);
  const key = (op: number, level: number): string => {
    let parts = Math.min(level, paths[op]!.length);
    while (parts < paths[op]!.length && opened.has(paths[op]!.slice(0, parts).join("/"))) ++parts;
    return paths[op]!.slice(0, parts).join("/");
  };
  const groups_at = (level: number): Map<string, number[]> => {
    const groups = new Map<string, number[]>();
    for (let op = 0; op < ops.name.length; ++op) {
      const name = key(op, level);
      (groups.get(name) ?? groups.set(name, []).get(name)!).push(op);
    }
    return groups;
  };
  let found = groups_at(1);
  for (let level = 2; level <= 6; ++level) {
    const more = groups_at(level);
    if (more.size > most) break;
    found = more;
  }
  if (found.size > most && opened.size === 0) { // flat names
    found = new Map();
    const band = Math.max(1, Math.ceil((deepest + 1) / 60));
    for (let op = 0; op < ops.name.length; ++op) {
      const at = Math.floor(depth[op]! / band), name = `depth ${at * band}${band > 1 ? ` to ${(at + 1) * band - 1}` : ""}`;
      (found.get(name) ?? found.set(name, []).get(name)!).push(op);
    }
  }
  const groups: Group[] = [...found].map(([name, members]) => ({ name, ops: members,
    depth: members.reduce((sum, op) => sum + depth[op]!, 0) / members.length })).sort((a, b) => a.depth - b.depth);
  const group_of = new Uint32Array(ops.name.length);
  groups.forEach((group, i) => group.ops.forEach((op) => (group_of[op] = i)));
  const weights = new Map<number, number>();
  for (let op = 0; op < ops.name.length; ++op)
    for (let i = ops.input_begin[op]!; i < ops.input_begin[op + 1]!; ++i) {
      const from = group_of[ops.input[i]!]!, to = group_of[op]!;
      if (from !== to) weights.set(from * groups.length + to, (weights.get(from * groups.length + to) ?? 0) + 1);
    }
  return { groups, edges: [...weights].map(([edge, weight]) => [Math.floor(edge / groups.length), edge % groups.length, weight]) };
}

// Columns by the longest path over the groups' edges that lead on; rows by the mean row of what comes before.
export function placed(drawing: Drawing): { x: number; y: number }[] {
  const { groups, edges } = drawing, column = new Array<number>(groups.length).fill(0);
  const before: number[][] = groups.map(() => []);
  for (const [from, to] of edges) if (from < to) before[to]!.push(from);
  for (let i = 0; i < groups.length; ++i) for (const from of before[i]!) column[i] = Math.max(column[i]!, column[from]! + 1);
  const rows: number[][] = [], row = new Array<number>(groups.length).fill(0);
  groups.forEach((_, i) => (rows[column[i]!] ??= []).push(i));
  for (const members of rows) {
    const wish = (i: number): number => before[i]!.length > 0 ? before[i]!.reduce((sum, from) => sum + row[from]!, 0) / before[i]!.length : i;
    const wishes = new Map((members ?? []).map((i) => [i, wish(i)]));
    (members ?? []).sort((a, b) => wishes.get(a)! - wishes.get(b)!).forEach((i, at) => (row[i] = at));
  }
  return groups.map((_, i) => ({ x: column[i]! * (box_width + gap_x) + 8, y: row[i]! * (box_height + gap_y) + 8 }));
}

export class GraphView {
  readonly element: HTMLElement;
  private readonly opened = new Set<string>();

  constructor(private readonly schedule: Schedule) {
    this.element = html("section", { class: "graph" });
    on_theme_change(() => this.draw());
    this.draw();
  }

  private draw(): void {
    const drawing = grouped(this.schedule, this.opened), places = placed(drawing);
    const width = Math.max(...places.map(({ x }) => x), 0) + box_width + 16, height = Math.max(...places.map(({ y }) => y), 0) + box_height + 16;
    const lines = drawing.edges.map(([from, to, weight]) => {
      const a = places[from]!, b = places[to]!, x1 = a.x + box_width, y1 = a.y + box_height / 2, x2 = b.x, y2 = b.y + box_height / 2;
      const bend = Math.max(20, Math.abs(x2 - x1) / 2);
      return svg("path", { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, fill: "none", stroke: theme("faint"),
        "stroke-opacity": 0.55, "stroke-width": Math.min(4, 0.8 + Math.log2(weight) / 2).toFixed(1) });
    });
    const boxes = drawing.groups.map((group, i) => this.box(group, places[i]!));
    const devices = this.schedule.devices.map((device, i) => {
      const swatch = html("span", { class: "swatch", "aria-hidden": true });
      swatch.style.background = colour(i);
      return html("li", {}, swatch, device.name);
    });
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Graph, by modules" }, ...lines, ...boxes);
    this.element.replaceChildren(html("h3", {}, "Graph"),
      html("p", { class: "help" }, `${count(this.schedule.ops.name.length)} ops in ${count(drawing.groups.length)} boxes, coloured by device. Click a module, or press Enter on it, to open it.`),
      this.opened.size > 0 ? button("close all", "Close all modules", () => { this.opened.clear(); this.draw(); }) : "",
      html("ul", { class: "legend" }, ...devices),
      html("div", { class: "scroll picture", tabindex: 0, role: "region", "aria-label": "Graph" }, picture));
  }

  private box(group: Group, at: { x: number; y: number }): SVGElement {
    const { ops, devices, unit } = this.schedule, shares = new Array<number>(devices.length).fill(0);
    let work = 0;
    for (const op of group.ops) {
      shares[ops.device[op]!]! += 1;
      work += ops.end[op]! - ops.start[op]!;
    }
    let x = at.x;
    const stripes = shares.map((share, device) => {
      const part = (share / group.ops.length) * box_width;
      const stripe = svg("rect", { x, y: at.y, width: part, height: box_height, fill: colour(device) });
      x += part;
      return share > 0 ? stripe : "";
    });
    const main = shares.indexOf(Math.max(...shares)), name = group.name || "(no name)";
    const where = shares.map((share, device) => (share > 0 ? `${devices[device]!.name} ${share}` : "")).filter(Boolean).join(", ");
    const short = name.length > 17 ? `…${name.slice(-16)}` : name;
    const can_open = group.ops.some((op) => path(ops.name[op]!).join("/") !== group.name) && !group.name.startsWith("depth ");
    const result = svg("g", { tabindex: can_open ? 0 : undefined, role: can_open ? "button" : "img", class: "box",
      "aria-label": `${name}: ${group.ops.length} ops, ${where}` },
      svg("title", {}, `${name}\n${count(group.ops.length)} ops, ${time(work, unit)} of work\n${where}`), ...stripes,
      svg("text", { x: at.x + 5, y: at.y + 14, "font-size": 11, fill: ink(colour(main)) }, short),
      svg("text", { x: at.x + 5, y: at.y + 27, "font-size": 9.5, fill: ink(colour(main)) }, `${count(group.ops.length)} ops · ${time(work, unit)}`));
    const open = (): void => {
      if (!can_open) return;
      this.opened.add(group.name);
      this.draw();
    };
    result.addEventListener("click", open);
    result.addEventListener("keydown", (event) => { if ((event as KeyboardEvent).key === "Enter") open(); });
    return result;
  }
}
