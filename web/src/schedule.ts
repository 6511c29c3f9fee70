// A schedule, indexed for drawing: lanes of bars that do not overlap, found by time.

import type { Schedule } from "./data";

export interface Lane {
  title: string;
  kind: "op" | "transfer";
  device: number; // whose lane it is; of a transfer, the destination
  items: Uint32Array; // by start
  starts: Float64Array;
  ends: Float64Array;
}
export interface Selection {
  kind: "op" | "transfer";
  id: number;
}

// Bars of one link may overlap where links are free: each goes to the first lane that is free.
function packed(items: number[], start: number[], end: number[]): number[][] {
  const lanes: number[][] = [], free: number[] = [];
  for (const item of items) {
    let lane = free.findIndex((until) => until <= start[item]!);
    if (lane < 0) lane = free.push(0) - 1;
    free[lane] = end[item]!;
    (lanes[lane] ??= []).push(item);
  }
  return lanes;
}

export class ScheduleIndex {
  readonly lanes: Lane[] = [];
  readonly lane_of_op: Uint32Array;
  readonly lane_of_transfer: Uint32Array;
  readonly on_chain: Uint8Array;
  readonly modules: string[]; // of ops, for colours
  readonly module_of_op: Uint16Array;
  private readonly incoming = new Map<number, number[]>(); // op * devices + dst -> transfers

  constructor(readonly schedule: Schedule) {
    const { ops, transfers, devices } = schedule;
    this.lane_of_op = new Uint32Array(ops.name.length);
    this.lane_of_transfer = new Uint32Array(transfers.start.length);
    this.on_chain = new Uint8Array(ops.name.length);
    schedule.chain.id.forEach((id, i) => {
      if (!schedule.chain.transfer[i]) this.on_chain[id] = 1;
    });
    const of_device: number[][] = devices.map(() => []);
    [...ops.start.keys()].sort((a, b) => ops.start[a]! - ops.start[b]! || a - b).forEach((op) => of_device[ops.device[op]!]?.push(op));
    const of_link = new Map<number, number[]>();
    [...transfers.start.keys()].sort((a, b) => transfers.start[a]! - transfers.start[b]!).forEach((id) => {
      const link = transfers.dst[id]! * devices.length + transfers.src[id]!;
      (of_link.get(link) ?? of_link.set(link, []).get(link)!).push(id);
      const key = transfers.producer[id]! * devices.length + transfers.dst[id]!;
      (this.incoming.get(key) ?? this.incoming.set(key, []).get(key)!).push(id);
    });
    devices.forEach((device, index) => {
      for (const items of packed(of_device[index]!, ops.start, ops.end)) this.add(device.name, "op", index, items, ops);
      if (of_device[index]!.length === 0) this.add(device.name, "op", index, [], ops);
      devices.forEach((source, src) => {
        const items = of_link.get(index * devices.length + src);
        if (items) for (const part of packed(items, transfers.start, transfers.end)) this.add(`${source.name} → ${device.name}`, "transfer", index, part, transfers);
      });
    });
    const names = new Map<string, number>();
    this.module_of_op = Uint16Array.from(ops.name, (name) => {
      const module = module_of(name);
      if (!names.has(module)) names.set(module, names.size);
      return Math.min(65535, names.get(module)!);
    });
    this.modules = [...names.keys()];
  }

  private add(title: string, kind: "op" | "transfer", device: number, items: number[], times: { start: number[]; end: number[] }): void {
    const lane_of = kind === "op" ? this.lane_of_op : this.lane_of_transfer;
    for (const item of items) lane_of[item] = this.lanes.length;
    this.lanes.push({ title, kind, device, items: Uint32Array.from(items),
      starts: Float64Array.from(items, (id) => times.start[id]!), ends: Float64Array.from(items, (id) => times.end[id]!) });
  }

  // The bar of a lane at a time; the nearest within `slack` if there is none.
  at(lane: Lane, time: number, slack: number): Selection | undefined {
    const after = first_after(lane.starts, time);
    let best = -1, distance = slack;
    for (const i of [after - 1, after]) {
      if (i < 0 || i >= lane.items.length) continue;
      const away = time < lane.starts[i]! ? lane.starts[i]! - time : Math.max(0, time - lane.ends[i]!);
      if (away <= distance) [best, distance] = [i, away];
    }
    return best < 0 ? undefined : { kind: lane.kind, id: lane.items[best]! };
  }

  // The bar before or after another one in its lane.
  beside(selection: Selection, step: number): Selection | undefined {
    const lane = this.lanes[this.lane(selection)]!;
    const id = lane.items[lane.items.indexOf(selection.id) + step];
    return id === undefined ? undefined : { kind: lane.kind, id };
  }

  lane(selection: Selection): number {
    return (selection.kind === "op" ? this.lane_of_op : this.lane_of_transfer)[selection.id]!;
  }

  span(selection: Selection): [number, number] {
    const times = selection.kind === "op" ? this.schedule.ops : this.schedule.transfers;
    return [times.start[selection.id]!, times.end[selection.id]!];
  }

  chain_step(index: number): Selection | undefined {
    const { chain } = this.schedule, id = chain.id[index];
    return id === undefined ? undefined : { kind: chain.transfer[index] ? "transfer" : "op", id };
  }

  chain_position(selection: Selection): number {
    const { chain } = this.schedule;
    return chain.id.findIndex((id, i) => id === selection.id && (chain.transfer[i] ? "transfer" : "op") === selection.kind);
  }

  inputs(op: number): number[] {
    const { ops } = this.schedule;
    return ops.input.slice(ops.input_begin[op]!, ops.input_begin[op + 1]!);
  }

  // How the result of `producer` came to the device of a consumer, if it travelled.
  arrival(producer: number, device: number): number | undefined {
    return this.incoming.get(producer * this.schedule.devices.length + device)?.[0];
  }

  // What the whole would take with the op on each other device; empty if nobody simulated it.
  elsewhere(op: number): [string, number][] {
    const { elsewhere, devices, ops } = this.schedule, at = elsewhere.op.indexOf(op);
    if (at < 0) return [];
    return devices.map((device, d): [string, number] => [device.name, elsewhere.makespan[d]![at]!]).filter((_, d) => d !== ops.device[op]);
  }

  // Ops whose name contains the text, whatever its case.
  find(text: string): number[] {
    const wanted = text.toLowerCase(), found: number[] = [];
    if (wanted) this.schedule.ops.name.forEach((name, op) => { if (name.toLowerCase().includes(wanted)) found.push(op); });
    return found;
  }
}

// The path of a name without its last part.
export function module_of(name: string): string {
  const end = Math.max(name.lastIndexOf("/"), name.lastIndexOf("."));
  if (end > 0) return name.slice(0, end);
  const digits = name.search(/[\d[(]/);
  return digits > 0 ? name.slice(0, digits).replace(/[_\-.:]+$/, "") || name : name;
}

// The first index whose value is larger.
export function first_after(sorted: Float64Array, value: number): number {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
