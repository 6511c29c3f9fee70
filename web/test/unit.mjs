// The parts of the page that draw nothing.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { made_up, written } from "./made_up.mjs";

const here = dirname(fileURLToPath(import.meta.url)), out = mkdtempSync(join(tmpdir(), "doppler-unit-"));
async function module_of(name) {
  await build({ entryPoints: [join(here, "../src", name)], bundle: true, format: "esm", outfile: join(out, `${name}.mjs`), logLevel: "error" });
  return import(join(out, `${name}.mjs`));
}
const { ScheduleIndex, module_of: module_name, first_after } = await module_of("schedule.ts");
const { Viewport } = await module_of("viewport.ts");
const { band } = await module_of("bands.ts");
const { time, bytes, ticks, change } = await module_of("format.ts");
const { grouped, placed } = await module_of("graph.ts");
const { visible_steps } = await module_of("memory.ts");
const { read_report } = await module_of("data.ts");

test("lanes hold every bar once, and none overlaps another", () => {
  const schedule = made_up(500, 3), index = new ScheduleIndex(schedule);
  const seen = index.lanes.filter((lane) => lane.kind === "op").flatMap((lane) => [...lane.items]);
  assert.equal(seen.length, 500);
  assert.equal(new Set(seen).size, 500);
  for (const lane of index.lanes) for (let i = 1; i < lane.items.length; ++i) assert(lane.starts[i] >= lane.ends[i - 1]);
});

test("the bar at a time is found, the nearest within reach otherwise", () => {
  const schedule = made_up(50, 1), index = new ScheduleIndex(schedule), lane = index.lanes[0];
  const middle = (lane.starts[10] + lane.ends[10]) / 2;
  assert.deepEqual(index.at(lane, middle, 0), { kind: "op", id: lane.items[10] });
  assert.equal(index.at(lane, -1, 0.5), undefined);
  assert.deepEqual(index.at(lane, -1, 2), { kind: "op", id: lane.items[0] });
});

test("a view stays within the run", () => {
  const view = new Viewport(10);
  view.zoom(0.5, 0);
  assert.deepEqual([view.from, view.to], [0, 5]);
  view.pan(10);
  assert.deepEqual([view.from, view.to], [5, 10]);
  view.zoom(100);
  assert.deepEqual([view.from, view.to], [0, 10]);
  view.set(2, 3);
  view.show(7, 7.5);
  assert(view.from <= 7 && view.to >= 7.5 && Math.abs(view.to - view.from - 1) < 1e-9);
});

test("numbers are for people", () => {
  assert.equal(time(0.01234, "s"), "12.34 ms");
  assert.equal(time(1.5e-6, "s"), "1.500 µs");
  assert.equal(time(12, "graph"), "12.00");
  assert.equal(time(undefined, "s"), "–");
  assert.equal(bytes(3 * 2 ** 30), "3.00 GiB");
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]);
});

test("modules are what comes before the last part of a name", () => {
  assert.equal(module_name("encoder/layer.3/MatMul"), "encoder/layer.3");
  assert.equal(module_name("matmul[0,1]"), "matmul");
  assert.equal(module_name("x"), "x");
});

test("the graph has few boxes, and an opened module more", () => {
  const schedule = made_up(5000, 4), closed = grouped(schedule, new Set()), places = placed(closed);
  assert(closed.groups.length <= 240 && closed.groups.length > 1);
  assert.equal(closed.groups.reduce((sum, group) => sum + group.ops.length, 0), 5000);
  assert.equal(new Set(places.map(({ x, y }) => `${x},${y}`)).size, places.length, "no two boxes in one place");
  const opened = grouped(schedule, new Set([closed.groups[0].name]));
  assert(opened.groups.length > closed.groups.length);
});

test("trainings together have a median and a range, as far as the longest goes", () => {
  const runs = [[{ update: 0, best: 5 }, { update: 1, best: 4 }], [{ update: 0, best: 9 }], [{ update: 0, best: 6 }, { update: 1, best: 2 }]];
  const { x, y, low, high } = band("best", runs, "best");
  assert.deepEqual([x, y, low, high], [[0, 1], [6, 3], [5, 2], [9, 4]]); // 5 6 9, then 2 4
});

test("what the whole would take elsewhere leaves out where the op is", () => {
  const schedule = made_up(5, 3), index = new ScheduleIndex(schedule), here = schedule.ops.device[1];
  assert.deepEqual(index.elsewhere(1).map(([name]) => name), ["gpu0", "gpu1", "gpu2"].filter((_, d) => d !== here));
  assert.deepEqual(index.elsewhere(0), []);
  assert.equal(change(1.1, 1, "s"), "1.100 s (+10.0 %)");
});

test("a peak within a pixel is not lost", () => {
  assert.deepEqual(visible_steps([0, 1, 1.001, 1.002, 5], [1, 2, 9, 3, 4], 0, 10, 10), [[0, 1], [1, 9], [5, 4]]);
});

test("ticks become seconds, and what cannot run is no number", () => {
  const made = made_up(3, 2), schedule = { ...written(made), tick: 2, time_on: [[1, 0xffffffff, 3]] };
  const report = read_report(JSON.stringify({ title: "", doppler: "", results: [{ result: "place", name: "", schedule }] }));
  assert.deepEqual(report.results[0].schedule.time_on[0].map((x) => (Number.isNaN(x) ? "never" : x)), [2, "never", 6]);
  made.ops.end.forEach((end, i) => assert(Math.abs(report.results[0].schedule.ops.end[i] - 2 * end) < 1e-12));
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  assert(Math.abs(sum(report.results[0].schedule.transfers.end) - 2 * sum(made.transfers.end)) < 1e-9);
  assert.throws(() => read_report("{}"), /found no results; required a list/);
});

test("a sorted list is searched by halves", () => {
  assert.equal(first_after(Float64Array.from([1, 2, 2, 3]), 2), 3);
  assert.equal(first_after(Float64Array.from([]), 2), 0);
});
