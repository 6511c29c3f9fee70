// A result of each kind as a section of the page.

import { training_bands } from "./bands";
import { chart, type Series } from "./chart";
import type { Result, Schedule } from "./data";
import { button, html } from "./dom";
import { bytes, count, number, percent, time } from "./format";
import { GraphView } from "./graph";
import { Memory } from "./memory";
import { facts, table, type Cell, type Column } from "./table";
import { Timeline } from "./timeline";
import { Viewport } from "./viewport";

type Row = Record<string, unknown>;
const rows_of = (value: unknown): Row[] => (Array.isArray(value) ? (value as Row[]) : []);
const text_of = (value: unknown): string => (value === undefined || value === null ? "" : String(value));
const unit_of = (result: Row): string => (result["unit"] === "graph" ? "graph" : "s");
const numbers = (value: unknown): number[] => (Array.isArray(value) ? (value as number[]) : []);

const time_cell = (value: unknown, unit: string): Cell => ({ text: time(value, unit), value: typeof value === "number" ? value : undefined });
const number_cell = (value: unknown, text = number(value)): Cell => ({ text, value: typeof value === "number" ? value : undefined });

// ---- schedules ----

function schedule_section(schedule: Schedule, title: string, beside?: { schedule: Schedule; title: string }): HTMLElement[] {
  const view = new Viewport(Math.max(schedule.makespan, beside?.schedule.makespan ?? 0));
  const timeline = new Timeline(schedule, title, view), parts: HTMLElement[] = [html("h3", {}, `Timeline: ${title}`), timeline.element];
  if (beside) {
    const difference = beside.schedule.makespan - schedule.makespan;
    parts.push(html("h3", {}, `Timeline: ${beside.title}`),
      html("p", {}, `${time(Math.abs(difference), schedule.unit)} (${percent(Math.abs(difference) / (schedule.makespan || 1))}) ${difference < 0 ? "shorter" : "longer"}; both are on one time axis.`),
      new Timeline(beside.schedule, beside.title, view).element);
  }
  if (schedule.devices.some((device) => device.memory_times.length > 0)) parts.push(new Memory(schedule, view).element);
  if (schedule.ops.input.length > 0) {
    const place = html("div");
    const show = button("draw the graph", "Draw the graph", () => place.replaceChildren(new GraphView(schedule).element));
    place.append(show);
    if (schedule.ops.name.length <= 20_000) place.replaceChildren(new GraphView(schedule).element);
    parts.push(place);
  }
  return parts;
}

const device_table = (result: Row): HTMLElement =>
  table("Devices", [{ title: "device" }, { title: "ops", numeric: true }, { title: "busy", numeric: true },
    { title: "utilisation", numeric: true, help: "busy time over slots × makespan" }, { title: "peak memory", numeric: true }, { title: "memory", numeric: true }],
    rows_of(result["devices"]).map((device) => [{ text: text_of(device["name"]) }, number_cell(device["ops"], count(device["ops"])), time_cell(device["busy"], unit_of(result)),
      { ...number_cell(device["utilisation"], percent(device["utilisation"])), share: Number(device["utilisation"]) },
      number_cell(device["peak_memory"], bytes(device["peak_memory"])), number_cell(device["memory"], device["memory"] ? bytes(device["memory"]) : "unlimited")]));

function outcome_facts(result: Row): HTMLElement {
  const unit = unit_of(result), pairs: [string, string, string?][] = [["graph", text_of(result["graph"])], ["machine", text_of(result["machine"])]];
  if (result["method"]) pairs.push(["method", `${text_of(result["method"])}${result["winner"] && result["winner"] !== result["method"] ? `, won by ${text_of(result["winner"])}` : ""}`]);
  pairs.push(["makespan", time(result["makespan"], unit), "when the last op ends, with exact times"]);
  if (typeof result["expected"] === "number") pairs.push(["expected", `${time(result["expected"], unit)} ± ${time(result["expected_error"], unit)}`, "the mean if times vary as the machine's do"]);
  pairs.push(["lower bound", `${time(result["lower_bound"], unit)} (${text_of(result["bound_kind"])})`, "no placement can beat it"], ["gap", percent(result["gap"]), "makespan over the bound, minus 1"]);
  if (result["optimal"] === true) pairs.push(["proven", "optimal"]);
  if (typeof result["single_device_makespan"] === "number") pairs.push(["one device", time(result["single_device_makespan"], unit)]);
  const transfers = result["transfers"] as Row | undefined;
  if (transfers) pairs.push(["transfers", `${count(transfers["count"])}, ${bytes(transfers["bytes"])}`]);
  if (result["feasible"] === false) pairs.push(["feasible", `no: ${text_of(result["reason"]) || "memory does not suffice"}`]);
  return facts(pairs);
}

function simulation(result: Result, beside?: Result): HTMLElement[] {
  const parts = [outcome_facts(result)];
  if (result.schedule)
    parts.push(...schedule_section(result.schedule, result.name, beside?.schedule ? { schedule: beside.schedule, title: beside.name } : undefined));
  return [...parts, device_table(result)];
}

// ---- comparisons ----

function comparison(result: Result): HTMLElement[] {
  const by_graph = new Map<string, Row[]>();
  for (const row of rows_of(result["results"])) {
    const key = `${text_of(row["graph"])} on ${text_of(row["machine"])}`;
    (by_graph.get(key) ?? by_graph.set(key, []).get(key)!).push(row);
  }
  return [...by_graph].map(([name, rows]) => {
    const unit = unit_of(rows[0] ?? {}), varies = rows.some((row) => typeof row["expected"] === "number");
    const judged = (row: Row): number => (typeof row["expected"] === "number" ? row["expected"] : typeof row["makespan"] === "number" ? row["makespan"] : Infinity);
    const best = Math.min(...rows.map(judged)), worst = Math.max(...rows.map(judged).filter(Number.isFinite));
    const columns: Column[] = [{ title: "method" }, { title: "makespan", numeric: true, help: "with exact times" }];
    if (varies) columns.push({ title: "expected", numeric: true, help: "the mean if times vary as the machine's do" });
    columns.push({ title: "over the bound", numeric: true }, { title: "seconds", numeric: true, help: "what the method took" }, { title: "devices busy", help: "the share of the time, device by device" }, { title: "note" });
    return table(name, columns, rows.map((row) => {
      const mark = judged(row) <= best * (1 + 1e-12);
      const cells: Cell[] = [{ text: text_of(row["method"]), strong: mark }, { ...time_cell(row["makespan"], unit), share: varies ? undefined : judged(row) / worst }];
      if (varies) cells.push({ ...time_cell(row["expected"], unit), share: judged(row) / worst });
      cells.push(number_cell(row["gap"], percent(row["gap"])), number_cell(row["seconds"], time(row["seconds"], "s")),
        { text: numbers(row["utilisation"]).map((share) => `${(100 * share).toFixed(0)} %`).join(" ") },
        { text: row["feasible"] === false ? text_of(row["reason"]) || "does not fit" : row["winner"] && row["winner"] !== row["method"] ? `won by ${text_of(row["winner"])}` : "" });
      return cells;
    }));
  });
}

// ---- runs ----

function run(result: Result): HTMLElement[] {
  const unit = unit_of(result), times = numbers(result["times"]);
  const parts = [facts([["graph", text_of(result["graph"])], ["machine", text_of(result["machine"])], ["devices", text_of(result["devices"])],
    ["measured", time(result["measured"], unit), "the median of the runs"], ["predicted", time(result["predicted"], unit)],
    ["one device", time(result["one_device"], unit)], ["speed-up", number(result["speed_up"])]])];
  if (result.schedule)
    parts.push(...schedule_section(result.schedule, `${result.name}, measured`, result.simulated ? { schedule: result.simulated, title: `${result.name}, simulated` } : undefined));
  if (times.length > 1)
    parts.push(chart({ title: "Every run", x: "run", y: "time", series: [{ name: "measured", x: times.map((_, i) => i + 1), y: times, dots: true }],
      format_y: (value) => time(value, unit), from_zero: true }));
  const shares = ["busy", "copying", "data", "channel", "memory", "others", "done"].filter((key) => rows_of(result["device_times"]).some((device) => key in device));
  parts.push(table("Where the time of each device went", [{ title: "device" }, { title: "ops", numeric: true }, ...shares.map((title): Column => ({ title, numeric: true }))],
    rows_of(result["device_times"]).map((device) => [{ text: text_of(device["name"]) }, number_cell(device["ops"], count(device["ops"])),
      ...shares.map((key) => ({ ...time_cell(device[key], unit), share: Number(device[key]) / (Number(result["last"]) || 1) }))])));
  return parts;
}

export function service_chart(times: { run: number; seconds: number; challenger: boolean }[], events: Row[], unit: string): HTMLElement {
  const series = (name: string, challenger: boolean): Series => {
    const of = times.filter((row) => row.challenger === challenger);
    return { name, x: of.map((row) => row.run), y: of.map((row) => row.seconds), dots: true };
  };
  return chart({ title: "Time of every run", x: "run", y: "time", series: [series("incumbent", false), series("challenger", true)], from_zero: true,
    marks: events.map((event) => ({ x: Number(event["run"]), text: `${text_of(event["event"])}: ${text_of(event["text"])}` })), format_y: (value) => time(value, unit) });
}

export const event_table = (events: Row[]): HTMLElement =>
  table("What the service did", [{ title: "run", numeric: true }, { title: "event" }, { title: "why" }],
    events.map((event) => [number_cell(event["run"], count(event["run"])), { text: text_of(event["event"]) }, { text: text_of(event["text"]) }]));

function service(result: Result): HTMLElement[] {
  const unit = unit_of(result), challengers = new Set(numbers(result["challengers"])), first = Number(result["resumed_at"] ?? 0);
  const times = numbers(result["times"]).map((seconds, i) => ({ run: first + i, seconds, challenger: challengers.has(first + i) }));
  const drifts = rows_of(result["drifts"]).map((drift) => ({ run: drift["run"], event: "drift", text: `${text_of(drift["name"])} ${text_of(drift["change"])}` }));
  const events = rows_of(result["events"]);
  return [facts([["graph", text_of(result["graph"])], ["machine", text_of(result["machine"])], ["runs", count(result["runs"])], ["of challengers", count(result["explored"])],
    ["changes", count(result["changes"])], ["at first", time(result["at_first"], unit)], ["at the end", time(result["at_the_end"], unit)]]),
  service_chart(times, [...drifts, ...events], unit), event_table([...drifts, ...events])];
}

// ---- validity, calibration ----

function validity(result: Result): HTMLElement[] {
  return rows_of(result["results"]).flatMap((graph) => {
    const by_origin = new Map<string, Row[]>();
    for (const sample of rows_of(graph["samples"])) {
      const origin = text_of(sample["origin"]);
      (by_origin.get(origin) ?? by_origin.set(origin, []).get(origin)!).push(sample);
    }
    return [html("h3", {}, text_of(graph["graph"])),
      facts([["Pearson", number(graph["pearson"])], ["Spearman", number(graph["spearman"])], ["mean error", percent(graph["mean_error"])], ["bias", percent(graph["bias"])],
        ["repeatability", number(graph["repeatability"]), "what Spearman would be between these runs and others like them"]]),
      chart({ title: "Measured against simulated", x: "simulated", y: "measured", diagonal: true, format_x: (value) => time(value, "s"), format_y: (value) => time(value, "s"),
        series: [...by_origin].map(([name, samples]) => ({ name, dots: true, x: samples.map((s) => Number(s["simulated"])), y: samples.map((s) => Number(s["measured"])) })) })];
  });
}

function calibration(result: Result): HTMLElement[] {
  const fit = result["fit"] as Row | undefined, quantiles = rows_of(fit?.["quantiles"]);
  const parts = [facts([["machine", text_of(result["machine"])], ["links", text_of(result["links"])], ["devices", count(result["devices"])], ["latency", time(result["latency"], "s")],
    ["links carry", `${bytes(result["bytes_per_second"])}/s`], ["jitter of ops", percent(result["jitter"])], ["of transfers", percent(result["transfer_jitter"])]]),
  table("Kinds of ops", [{ title: "kind" }, { title: "dtype" }, { title: "samples", numeric: true }, { title: "FLOP/s", numeric: true }, { title: "bytes/s", numeric: true }, { title: "jitter", numeric: true }],
    rows_of(result["kinds"]).map((kind) => [{ text: text_of(kind["kind"]) }, { text: text_of(kind["dtype"]) }, number_cell(kind["samples"], count(kind["samples"])),
      number_cell(kind["flops_per_second"]), number_cell(kind["bytes_per_second"]), number_cell(kind["jitter"], percent(kind["jitter"]))]))];
  if (quantiles.length > 0)
    parts.push(chart({ title: "Times over what is usual: measured and modelled", x: "share of ops", y: "at most", series: ["measured", "modelled"].map((key) => ({ name: key,
      x: quantiles.map((q) => Number(q["share"])), y: quantiles.map((q) => Number(q[key])) })) }));
  return parts;
}

// ---- training ----

export function training_charts(metrics: Row[], unit: string): HTMLElement[] {
  const stages = [...new Set(metrics.map((row) => text_of(row["stage"])))];
  return stages.flatMap((stage) => {
    const rows = metrics.filter((row) => text_of(row["stage"]) === stage), x = rows.map((row, i) => Number(row["update"] ?? i));
    const line = (key: string): Series => ({ name: key, x, y: rows.map((row) => (typeof row[key] === "number" ? (row[key] as number) : null)) });
    const present = (key: string): boolean => rows.some((row) => typeof row[key] === "number");
    const of_time = ["best", "mean", "batch_best"].filter(present), of_share = ["entropy", "agreement", "sel_agreement", "plc_agreement"].filter(present);
    return [
      ...(of_time.length > 0 ? [chart({ title: `Stage ${stage}: makespans`, x: "update", y: "makespan", series: of_time.map(line), format_y: (value) => time(value, unit) })] : []),
      ...(of_share.length > 0 ? [chart({ title: `Stage ${stage}: the policy`, x: "update", y: "", series: of_share.map(line) })] : [])];
  });
}

function training(result: Result): HTMLElement[] {
  const tasks = rows_of(result["results"]), unit = unit_of(tasks[0] ?? {});
  return [facts([["directory", text_of(result["directory"])], ["episodes", count(result["episodes"])], ["seconds", time(result["seconds"], "s")], ["seed", text_of(result["seed"])]]),
    ...training_charts((result.metrics ?? []) as Row[], unit),
    table("Graphs", [{ title: "graph" }, { title: "best", numeric: true }, { title: "lower bound", numeric: true }, { title: "gap", numeric: true }],
      tasks.map((task) => [{ text: text_of(task["graph"]) }, time_cell(task["best"], unit_of(task)), time_cell(task["lower_bound"], unit_of(task)), number_cell(task["gap"], percent(task["gap"]))]))];
}

// ---- reasons ----

function why(result: Result): HTMLElement[] {
  const unit = unit_of(result);
  return [facts([["graph", text_of(result["graph"])], ["machine", text_of(result["machine"])], ["makespan", time(result["makespan"], unit)],
    ["limited by", `${text_of(result["limit"])}: ${text_of(result["because"])}`]]),
  table("The critical chain", [{ title: "step", numeric: true }, { title: "what" }, { title: "where" }, { title: "start", numeric: true }, { title: "takes", numeric: true }, { title: "waited for" }],
    rows_of(result["chain"]).map((step, i) => [number_cell(i + 1, String(i + 1)), { text: text_of(step["name"]) }, { text: text_of(step["device"]) }, time_cell(step["start"], unit),
      time_cell(Number(step["end"]) - Number(step["start"]), unit), { text: text_of(step["waits_for"]) }])),
  table("What would help", [{ title: "change" }, { title: "makespan", numeric: true }],
    rows_of(result["help"]).map((help) => [{ text: text_of(help["change"]) }, time_cell(help["makespan"], unit)]))];
}

// Whatever else a result has: its plain values, and its lists as tables.
function anything(result: Result): HTMLElement[] {
  const parts: HTMLElement[] = [], plain: [string, string][] = [];
  for (const [key, value] of Object.entries(result)) {
    if (["result", "version", "name", "schedule", "simulated", "metrics", "placement"].includes(key)) continue;
    const rows = rows_of(value);
    if (rows.length > 0 && typeof rows[0] === "object") {
      const keys = Object.keys(rows[0]!).filter((name) => typeof rows[0]![name] !== "object");
      parts.push(table(key, keys.map((title): Column => ({ title, numeric: typeof rows[0]![title] === "number" })),
        rows.map((row) => keys.map((name) => (typeof row[name] === "number" ? number_cell(row[name]) : { text: text_of(row[name]) })))));
    } else if (typeof value !== "object") plain.push([key, typeof value === "number" ? number(value) : text_of(value)]);
  }
  return [facts(plain), ...parts];
}

const views: Record<string, (result: Result, beside?: Result) => HTMLElement[]> = { simulation, place: simulation, comparison, run, service, validity, calibration, training, why };

// The section of trainings that stand side by side, beside their own ones.
export function trainings_together(trainings: Result[]): HTMLElement {
  const name = `${trainings.length} trainings together`, first = rows_of(trainings[0]!["results"])[0] ?? {};
  return html("section", { class: "result", "aria-label": name }, html("h2", {}, name), ...training_bands(trainings, unit_of(first)));
}

// The section of a result. Two simulations or placements are shown on one time axis: the second is `beside`.
export function section(result: Result, beside?: Result): HTMLElement {
  const draw = views[result.result] ?? anything;
  return html("section", { class: "result", "aria-label": result.name }, html("h2", {}, result.name), ...draw(result, beside));
}
