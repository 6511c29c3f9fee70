// The timeline: a lane per device and link, a bar per op and transfer, on a canvas, so that 10^5 bars stay fluid. What is
// selected is told in words beside it, by mouse, by keys, and to screen readers.

import { colour, ink, on_theme_change, theme } from "./colours";
import type { Schedule } from "./data";
import { button, html, save_as, unique } from "./dom";
import { bytes, change, count, ticks, time } from "./format";
import { CanvasPen, SvgPen, type Pen } from "./pens";
import { ScheduleIndex, first_after, type Lane, type Selection } from "./schedule";
import type { Viewport } from "./viewport";

const op_height = 26, transfer_height = 9, gap = 3, gutter = 132, axis = 22;
type Colouring = "kind" | "module";

export class Timeline {
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly details: HTMLElement;
  private readonly status: HTMLElement;
  private readonly tip: HTMLElement;
  private readonly index: ScheduleIndex;
  private readonly tops: number[] = [];
  private readonly height: number;
  private selected: Selection | undefined;
  private found: number[] = [];
  private colouring: Colouring = "kind";
  private chain_shown = true;
  private requested = false;

  constructor(readonly schedule: Schedule, readonly title: string, private readonly view: Viewport) {
    this.index = new ScheduleIndex(schedule);
    let y = axis;
    for (const lane of this.index.lanes) {
      this.tops.push(y);
      y += (lane.kind === "op" ? op_height : transfer_height) + gap;
    }
    this.height = y;
    const help = unique("timeline-help");
    this.canvas = html("canvas", { tabindex: 0, role: "application", "aria-label": `Timeline of ${title}`,
      "aria-describedby": help, "data-bars": schedule.ops.name.length, "data-transfers": schedule.transfers.start.length });
    this.canvas.style.height = `${this.height}px`;
    this.details = html("div", { class: "details" });
    this.status = html("p", { class: "status", role: "status", "aria-live": "polite" });
    this.tip = html("div", { class: "tip", hidden: true, "aria-hidden": true });
    this.element = html("section", { class: "timeline" }, this.controls(),
      html("div", { class: "canvas" }, this.canvas, this.tip),
      html("p", { class: "help", id: help }, "Drag to move, wheel or + and − to zoom, arrows to go from bar to bar, n and p along the critical chain, 0 for all, Escape to let go."),
      this.status, this.details);
    this.listen();
    this.tell();
    view.listen(() => this.draw());
    on_theme_change(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  select(selection: Selection | undefined): void {
    this.selected = selection;
    if (selection) this.view.show(...this.index.span(selection));
    this.tell();
    this.draw();
  }

  draw(): void {
    if (this.requested) return;
    this.requested = true;
    requestAnimationFrame(() => {
      this.requested = false;
      this.paint();
    });
  }

  // ---- what is around the canvas ----

  private controls(): HTMLElement {
    const search = html("input", { type: "search", placeholder: "name of an op", "aria-label": "Search ops by name" });
    search.addEventListener("input", () => this.search(search.value));
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || this.found.length === 0) return;
      const at = this.selected?.kind === "op" ? this.found.indexOf(this.selected.id) : -1;
      this.select({ kind: "op", id: this.found[(at + (event.shiftKey ? this.found.length - 1 : 1)) % this.found.length]! });
    });
    const colours = html("select", { "aria-label": "Colour bars by" }, html("option", { value: "kind" }, "colours: kind"), html("option", { value: "module" }, "colours: module"));
    colours.addEventListener("change", () => {
      this.colouring = colours.value as Colouring;
      this.draw();
    });
    const chain = html("input", { type: "checkbox", checked: true });
    chain.addEventListener("change", () => {
      this.chain_shown = chain.checked;
      this.draw();
    });
    return html("div", { class: "controls" }, search, colours,
      html("label", {}, chain, " critical chain"),
      button("‹", "Previous step of the critical chain", () => this.walk(-1)),
      button("›", "Next step of the critical chain", () => this.walk(1)),
      button("+", "Zoom in", () => this.view.zoom(0.5)), button("−", "Zoom out", () => this.view.zoom(2)),
      button("all", "Show the whole run", () => this.view.all()),
      button("SVG", "Save what is shown as SVG", () => this.save_svg()),
      button("PNG", "Save what is shown as PNG", () => this.save_png()));
  }

  private search(text: string): void {
    this.found = this.index.find(text);
    this.status.textContent = text ? `${count(this.found.length)} ops match` : "";
    if (this.found.length > 0) this.select({ kind: "op", id: this.found[0]! });
    else this.draw();
  }

  private walk(step: number): void {
    const { chain } = this.schedule;
    const here = this.selected ? this.index.chain_position(this.selected) : -1;
    const next = here < 0 ? (step > 0 ? 0 : chain.id.length - 1) : here + step;
    const selection = this.index.chain_step(Math.min(chain.id.length - 1, Math.max(0, next)));
    if (selection) this.select(selection);
  }

  private tell(): void {
    const { schedule, selected } = this;
    if (!selected) {
      this.details.replaceChildren();
      return;
    }
    const lines = selected.kind === "op" ? this.tell_op(selected.id) : this.tell_transfer(selected.id);
    const position = this.index.chain_position(selected);
    if (position >= 0)
      lines.push(["critical chain", `step ${position + 1} of ${schedule.chain.id.length}; it waited for ${schedule.waits[schedule.chain.waits[position]!] ?? "nothing"}`]);
    this.details.replaceChildren(html("dl", { class: "facts" },
      ...lines.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value)))));
    this.status.textContent = this.words(selected);
  }

  private tell_op(op: number): [string, string | HTMLElement][] {
    const { ops, devices, unit, kinds, causes, types, time_on, type_of_device } = this.schedule;
    const device = ops.device[op]!;
    const lines: [string, string | HTMLElement][] = [
      ["op", ops.name[op]!], ["kind", kinds[ops.kind[op]!] ?? ""], ["device", devices[device]?.name ?? ""],
      ["start", time(ops.start[op], unit)], ["takes", time(ops.end[op]! - ops.start[op]!, unit)],
      ["ready since", `${time(ops.ready[op], unit)}${ops.start[op]! > ops.ready[op]! ? `, then waited ${time(ops.start[op]! - ops.ready[op]!, unit)}` : ""}`]];
    const cause = ops.cause[op];
    if (cause !== undefined && causes[cause]) lines.push(["why here", causes[cause]!]);
    if (time_on.length > 0)
      lines.push(["on other devices", types.map((type, i) => `${type} ${time(time_on[i]![op], unit)}${type_of_device[device] === i ? " (here)" : ""}`).join(", ")]);
    const moved = this.index.elsewhere(op);
    if (moved.length > 0)
      lines.push(["the whole, were it on", moved.map(([name, whole]) => `${name}: ${Number.isNaN(whole) ? "cannot be" : change(whole, this.schedule.makespan, unit)}`).join(", ")]);
    const inputs = html("ul", {});
    for (const producer of this.index.inputs(op).slice(0, 12)) {
      const arrival = this.index.arrival(producer, device);
      const from = ops.device[producer] === device ? "" : `, from ${devices[ops.device[producer]!]?.name}${arrival === undefined ? "" : `, there at ${time(this.schedule.transfers.end[arrival], unit)}`}`;
      const go = button(ops.name[producer]!, `Select ${ops.name[producer]}`, () => this.select({ kind: "op", id: producer }));
      inputs.append(html("li", {}, go, from));
    }
    if (inputs.childElementCount > 0) lines.push(["inputs", inputs]);
    return lines;
  }

  private tell_transfer(id: number): [string, string][] {
    const { transfers, ops, devices, unit } = this.schedule;
    return [["result of", ops.name[transfers.producer[id]!]!],
      ["from, to", `${devices[transfers.src[id]!]?.name} → ${devices[transfers.dst[id]!]?.name}`], ["size", bytes(transfers.bytes[id])],
      ["start", time(transfers.start[id], unit)], ["takes", time(transfers.end[id]! - transfers.start[id]!, unit)],
      ["waited for the link", time(transfers.start[id]! - transfers.queued[id]!, unit)]];
  }

  private words(selection: Selection): string {
    const [start, end] = this.index.span(selection), { unit, ops, transfers, devices } = this.schedule;
    const what = selection.kind === "op"
      ? `${ops.name[selection.id]} on ${devices[ops.device[selection.id]!]?.name}`
      : `result of ${ops.name[transfers.producer[selection.id]!]} from ${devices[transfers.src[selection.id]!]?.name} to ${devices[transfers.dst[selection.id]!]?.name}`;
    return `${what}, ${time(start, unit)} to ${time(end, unit)}`;
  }

  // ---- mouse and keys ----

  private listen(): void {
    let dragged_from: number | undefined, moved = false;
    this.canvas.addEventListener("pointerdown", (event) => {
      dragged_from = event.offsetX;
      moved = false;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (dragged_from === undefined) return this.hover(event);
      if (Math.abs(event.offsetX - dragged_from) < 3 && !moved) return;
      moved = true;
      this.view.pan((dragged_from - event.offsetX) / this.plot_width());
      dragged_from = event.offsetX;
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (!moved) this.select(this.under(event));
      dragged_from = undefined;
    });
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("wheel", (event) => {
      if (event.offsetX < gutter) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.view.pan(event.deltaX / this.plot_width());
      else this.view.zoom(2 ** (event.deltaY / 240), this.time_at(event.offsetX));
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      if (this.key(event.key, event.shiftKey)) event.preventDefault();
    });
  }

  private key(key: string, shift: boolean): boolean {
    if (key === "+" || key === "=") this.view.zoom(0.5, this.selected ? this.index.span(this.selected)[0] : undefined);
    else if (key === "-") this.view.zoom(2);
    else if (key === "0") this.view.all();
    else if (key === "n") this.walk(1);
    else if (key === "p") this.walk(-1);
    else if (key === "Escape") this.select(undefined);
    else if (key === "ArrowLeft" || key === "ArrowRight") {
      const step = key === "ArrowLeft" ? -1 : 1;
      if (shift) this.view.pan(step * 0.2);
      else if (this.selected) this.select(this.index.beside(this.selected, step) ?? this.selected);
      else this.select(this.first_bar());
    } else if (key === "ArrowUp" || key === "ArrowDown") this.change_lane(key === "ArrowUp" ? -1 : 1);
    else return false;
    return true;
  }

  private first_bar(): Selection | undefined {
    const lane = this.index.lanes.find((candidate) => candidate.items.length > 0);
    return lane && { kind: lane.kind, id: lane.items[0]! };
  }

  private change_lane(step: number): void {
    if (!this.selected) return this.select(this.first_bar());
    const middle = this.index.span(this.selected)[0];
    for (let lane = this.index.lane(this.selected) + step; this.index.lanes[lane]; lane += step) {
      const bar = this.index.at(this.index.lanes[lane]!, middle, Infinity);
      if (bar) return this.select(bar);
    }
  }

  private hover(event: PointerEvent): void {
    const bar = this.under(event);
    this.tip.hidden = bar === undefined;
    if (!bar) return;
    this.tip.textContent = this.words(bar);
    this.tip.style.left = `${Math.min(event.offsetX + 12, this.canvas.clientWidth - 260)}px`;
    this.tip.style.top = `${event.offsetY + 16}px`;
  }

  private under(event: PointerEvent): Selection | undefined {
    const lane = this.tops.findIndex((top, i) => event.offsetY >= top && event.offsetY < top + this.lane_height(this.index.lanes[i]!));
    if (lane < 0 || event.offsetX < gutter) return undefined;
    const slack = (3 * (this.view.to - this.view.from)) / this.plot_width();
    return this.index.at(this.index.lanes[lane]!, this.time_at(event.offsetX), slack);
  }

  // ---- drawing ----

  private plot_width = (): number => Math.max(1, this.canvas.clientWidth - gutter);
  private time_at = (x: number): number => this.view.from + ((x - gutter) / this.plot_width()) * (this.view.to - this.view.from);
  private lane_height = (lane: Lane): number => (lane.kind === "op" ? op_height : transfer_height);

  private paint(): void {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth;
    if (width === 0) return;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(this.height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
    }
    const context = this.canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint_on(new CanvasPen(context), width);
  }

  // Draws by any pen: on the canvas, or into a file.
  private paint_on(pen: Pen, width: number): void {
    pen.clear(width, this.height, theme("background"));
    this.paint_axis(pen, width);
    this.index.lanes.forEach((lane, i) => this.paint_lane(pen, lane, this.tops[i]!, width));
    this.paint_gaps(pen, width);
    if (this.chain_shown) this.paint_chain(pen, width);
    if (this.selected) this.outline(pen, this.selected, theme("text"), 2.5, width);
    this.index.lanes.forEach((lane, i) => {
      pen.box(0, this.tops[i]! - gap, gutter - 4, this.lane_height(lane) + gap, theme("background"));
      if (lane.kind === "op" || i === 0 || this.index.lanes[i - 1]!.title !== lane.title)
        pen.text(lane.title, 4, this.tops[i]! + this.lane_height(lane) / 2, theme("text"), lane.kind === "op" ? 12 : 9, gutter - 12);
    });
  }

  private at(x: number, width: number): number {
    return gutter + ((x - this.view.from) / (this.view.to - this.view.from)) * (width - gutter);
  }

  private paint_axis(pen: Pen, width: number): void {
    for (const tick of ticks(this.view.from, this.view.to, Math.max(2, Math.floor((width - gutter) / 110)))) {
      const x = this.at(tick, width);
      pen.line(x, axis - 6, x, this.height, theme("grid"), 1);
      pen.text(time(tick, this.schedule.unit), x + 3, 9, theme("text"), 10, 100);
    }
  }

  // Bars narrower than a pixel are merged with their neighbours: what is drawn depends on the width, not on the ops.
  private paint_lane(pen: Pen, lane: Lane, top: number, width: number): void {
    const height = this.lane_height(lane), first = Math.max(0, first_after(lane.starts, this.view.from) - 1);
    const { ops } = this.schedule, matches = this.found.length > 0 ? new Set(this.found) : undefined;
    let covered = -Infinity;
    for (let i = first; i < lane.items.length && lane.starts[i]! <= this.view.to; ++i) {
      if (lane.ends[i]! < this.view.from) continue;
      const id = lane.items[i]!, from = Math.max(gutter, this.at(lane.starts[i]!, width)), to = Math.min(width, this.at(lane.ends[i]!, width));
      if (to <= covered) continue;
      const end = Math.max(to, Math.max(from, covered) + 0.7), begin = Math.max(from, covered);
      const shade = lane.kind === "transfer" ? theme("transfer") : colour(this.colouring === "kind" ? ops.kind[id]! : this.index.module_of_op[id]!);
      pen.box(begin, top, end - begin, height, shade, matches && !(lane.kind === "op" && matches.has(id)) ? 0.25 : 1);
      covered = end;
      if (lane.kind === "op" && end - begin > 28) {
        pen.text(ops.name[id]!, begin + 3, top + height / 2, ink(shade), 11, end - begin - 6);
        pen.line(end - 0.5, top, end - 0.5, top + height, theme("background"), 1);
      }
    }
  }

  // Idle time carries its cause as text where there is room.
  private paint_gaps(pen: Pen, width: number): void {
    const { gaps, waits } = this.schedule, lanes = new Map<number, number>();
    this.index.lanes.forEach((lane, i) => { if (lane.kind === "op" && !lanes.has(lane.device)) lanes.set(lane.device, i); });
    gaps.start.forEach((start, i) => {
      const end = gaps.end[i]!;
      if (end < this.view.from || start > this.view.to) return;
      const from = Math.max(gutter, this.at(start, width)), to = Math.min(width, this.at(end, width));
      if (to - from < 4) return;
      const top = this.tops[lanes.get(gaps.device[i]!)! + 0]! + op_height - 5;
      pen.box(from + 1, top, to - from - 2, 3, theme("idle"));
      if (to - from > 60) pen.text(waits[gaps.waits[i]!] ?? "", from + 4, top - 7, theme("faint"), 10, to - from - 8);
    });
  }

  private paint_chain(pen: Pen, width: number): void {
    this.schedule.chain.id.forEach((id, i) => {
      this.outline(pen, { kind: this.schedule.chain.transfer[i] ? "transfer" : "op", id }, theme("chain"), 2, width);
    });
  }

  private outline(pen: Pen, selection: Selection, shade: string, thickness: number, width: number): void {
    const [start, end] = this.index.span(selection);
    if (end < this.view.from || start > this.view.to) return;
    const lane = this.index.lane(selection), from = Math.max(gutter, this.at(start, width));
    pen.frame(from, this.tops[lane]! - 1, Math.max(2, Math.min(width, this.at(end, width)) - from), this.lane_height(this.index.lanes[lane]!) + 2, shade, thickness);
  }

  private save_svg(): void {
    const pen = new SvgPen();
    this.paint_on(pen, Math.max(640, this.canvas.clientWidth));
    save_as("timeline.svg", new Blob([pen.document()], { type: "image/svg+xml" }));
  }

  // Twice as fine as the screen, for papers.
  private save_png(): void {
    const width = Math.max(640, this.canvas.clientWidth), fine = 2, picture = html("canvas", { width: width * fine, height: this.height * fine });
    const context = picture.getContext("2d")!;
    context.scale(fine, fine);
    this.paint_on(new CanvasPen(context), width);
    picture.toBlob((blob) => { if (blob) save_as("timeline.png", blob); });
  }
}
