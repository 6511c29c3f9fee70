// What a report is made of: the JSON of results (docs/json.md), and the schedule that some of them carry.

export interface Report {
  title: string;
  doppler: string;
  results: Result[];
  live?: boolean; // the page is served by `doppler watch` and gets more by events
}

// Results are drawn by their kind; keys are those of docs/json.md.
export interface Result {
  result: string;
  name: string; // the file that it came from, or what was asked for
  schedule?: Schedule;
  simulated?: Schedule; // beside a measured one
  metrics?: Record<string, unknown>[]; // of a training: a row per update
  [key: string]: unknown;
}

// Who ran what when, by columns: op i is entry i of every column of `ops`.
export interface Schedule {
  unit: "s" | "graph";
  makespan: number;
  tick: number; // times in files are whole ticks; read_report() turns them into seconds
  measured: boolean;
  devices: { name: string; memory: number; slots: number; memory_times: number[]; memory_bytes: number[] }[];
  kinds: string[];
  causes: string[]; // why ops are where they are
  ops: {
    name: string[];
    kind: number[];
    device: number[];
    slot: number[];
    ready: number[];
    start: number[];
    end: number[];
    cause: number[]; // none: empty
    input_begin: number[]; // inputs of op i: input[input_begin[i]] … input[input_begin[i + 1] - 1], producers
    input: number[];
  };
  types: string[]; // of devices
  type_of_device: number[];
  time_on: number[][]; // per type: seconds of every op, NaN where it cannot run; empty if there is one type
  transfers: {
    producer: number[];
    src: number[];
    dst: number[];
    queued: number[];
    start: number[];
    end: number[];
    bytes: number[];
  };
  gaps: { device: number[]; slot: number[]; start: number[]; end: number[]; waits: number[] };
  waits: string[]; // what gaps and steps of the chain wait for
  // what the whole would take with an op elsewhere: makespan[d][i] if op[i] were on device d, NaN where it cannot be
  elsewhere: { op: number[]; makespan: number[][] };
  chain: { transfer: number[]; id: number[]; waits: number[] }; // transfer 1: id is of a transfer, else of an op
}

const cannot_run = 0xffffffff;

// What files have instead of ends and instants: shorter numbers.
interface Written {
  ops: { takes: number[]; waited: number[] };
  transfers: { later: number[]; takes: number[]; waited: number[] };
}

function unpack(schedule: Schedule & Written): void {
  const { ops, transfers } = schedule;
  ops.end = ops.start.map((start, i) => start + ops.takes[i]!);
  ops.ready = ops.start.map((start, i) => start - ops.waited[i]!);
  let start = 0;
  transfers.start = transfers.later.map((later) => (start += later));
  transfers.end = transfers.start.map((at, i) => at + transfers.takes[i]!);
  transfers.queued = transfers.start.map((at, i) => at - transfers.waited[i]!);
}

function in_seconds(schedule: Schedule): void {
  const { ops, transfers, gaps, tick } = schedule;
  const scale = (column: number[]): void => column.forEach((ticks, i) => (column[i] = ticks === cannot_run ? NaN : ticks * tick));
  [ops.ready, ops.start, ops.end, transfers.queued, transfers.start, transfers.end, gaps.start, gaps.end, ...schedule.time_on, ...schedule.elsewhere.makespan].forEach(scale);
  for (const device of schedule.devices) scale(device.memory_times);
}

export function read_report(text: string): Report {
  const report = JSON.parse(text) as Report;
  if (!Array.isArray(report.results)) throw new Error("report: found no results; required a list");
  for (const result of report.results) for (const schedule of [result.schedule, result.simulated]) if (schedule) {
    unpack(schedule as Schedule & Written);
    in_seconds(schedule);
  }
  return report;
}
