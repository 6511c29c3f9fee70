// Numbers for people.

const significant = (value: number, digits = 4): string => {
  if (!Number.isFinite(value)) return "–";
  const text = value.toPrecision(digits);
  return text.includes("e") ? String(Number(text)) : text;
};

export function time(value: unknown, unit: string): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  if (unit !== "s") return significant(value);
  const size = Math.abs(value);
  if (size >= 1 || size === 0) return `${significant(value)} s`;
  if (size >= 1e-3) return `${significant(value * 1e3)} ms`;
  return size >= 1e-6 ? `${significant(value * 1e6)} µs` : `${significant(value * 1e9)} ns`;
}

export function bytes(value: unknown): string {
  if (typeof value !== "number") return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let index = 0, size = value;
  while (size >= 1024 && index + 1 < units.length) {
    size /= 1024;
    ++index;
  }
  return `${index === 0 ? size : significant(size, 3)} ${units[index]}`;
}

export const percent = (value: unknown): string =>
  typeof value === "number" ? `${(100 * value).toFixed(1)} %` : "–";

export const count = (value: unknown): string =>
  typeof value === "number" ? value.toLocaleString("en-GB").replaceAll(",", " ") : "–";

export const number = (value: unknown): string => (typeof value === "number" ? significant(value) : "–");

// Round values between two ends, about `wanted` of them.
export function ticks(low: number, high: number, wanted: number): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? 10 * power;
  const result: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12); ++i) result.push(i * step);
  return result;
}

// A time beside the one that it would replace.
export const change = (value: number, before: number, unit: string): string =>
  `${time(value, unit)} (${value < before ? "−" : "+"}${Math.abs((100 * (value - before)) / before).toFixed(1)} %)`;
