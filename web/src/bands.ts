// Several trainings as one picture: a line through the middle of them, and a band from the least to the largest.

import { chart, type Series } from "./chart";
import type { Result } from "./data";
import { time } from "./format";

type Row = Record<string, unknown>;

// Of runs of one stage, update by update as far as any of them goes: the median and the range of a metric.
export function band(name: string, runs: Row[][], key: string): Series {
  const length = Math.max(0, ...runs.map((rows) => rows.length));
  const series: Required<Pick<Series, "name" | "x" | "y" | "low" | "high">> = { name, x: [], y: [], low: [], high: [] };
  for (let i = 0; i < length; ++i) {
    const values = runs.map((rows) => rows[i]?.[key]).filter((value): value is number => typeof value === "number").sort((a, b) => a - b);
    if (values.length === 0) continue;
    const middle = values.length >> 1;
    series.x.push(Number(runs.find((rows) => rows[i])?.[i]?.["update"] ?? i));
    series.y.push(values.length % 2 ? values[middle]! : (values[middle - 1]! + values[middle]!) / 2);
    series.low.push(values[0]!);
    series.high.push(values.at(-1)!);
  }
  return series;
}

// Charts of trainings that differ in their seed, stage by stage.
export function training_bands(trainings: Result[], unit: string): HTMLElement[] {
  const all = trainings.map((training) => (training.metrics ?? []) as Row[]);
  const stages = [...new Set(all.flat().map((row) => String(row["stage"])))];
  return stages.flatMap((stage) => {
    const runs = all.map((rows) => rows.filter((row) => String(row["stage"]) === stage));
    const present = (key: string): boolean => runs.some((rows) => rows.some((row) => typeof row[key] === "number"));
    const drawn = (keys: string[]): Series[] => keys.filter(present).map((key) => band(key, runs, key));
    const times = drawn(["best", "mean"]), shares = drawn(["entropy", "agreement"]);
    return [
      ...(times.length > 0 ? [chart({ title: `Stage ${stage}: makespans of ${trainings.length} trainings, median and range`, x: "update", y: "makespan", series: times, format_y: (value) => time(value, unit) })] : []),
      ...(shares.length > 0 ? [chart({ title: `Stage ${stage}: the policies`, x: "update", y: "", series: shares })] : [])];
  });
}
