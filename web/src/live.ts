// What `doppler watch` sends: lines of the log of a service or of the metrics of a training, as they are written.

import { html } from "./dom";
import { event_table, service_chart, training_charts } from "./views";
import { count, time } from "./format";
import { facts } from "./table";

type Row = Record<string, unknown>;
const most_rows = 20_000; // older runs leave

export class Live {
  readonly element = html("section", { class: "result live", "aria-label": "Live" });
  private runs: { run: number; seconds: number; challenger: boolean }[] = [];
  private events: Row[] = [];
  private metrics: Row[] = [];
  private waiting = false;

  constructor(source: EventSource) {
    this.draw();
    source.addEventListener("line", (event) => this.add(JSON.parse((event as MessageEvent<string>).data) as Row));
    source.addEventListener("end", () => {
      source.close();
      document.documentElement.dataset["ended"] = "true";
    });
  }

  add(row: Row): void {
    if (typeof row["role"] === "string") this.runs.push({ run: Number(row["run"]), seconds: Number(row["seconds"]), challenger: row["role"] === "challenger" });
    else if (typeof row["event"] === "string") this.events.push(row);
    else this.metrics.push(row);
    if (this.runs.length > most_rows) this.runs = this.runs.slice(-most_rows / 2);
    if (this.waiting) return; // as often as a person can see it
    this.waiting = true;
    setTimeout(() => {
      this.waiting = false;
      this.draw();
    }, 250);
  }

  private draw(): void {
    const last = this.runs.at(-1), best = this.metrics.at(-1);
    const parts: HTMLElement[] = [html("h2", {}, "Live")];
    if (last) {
      const incumbent = this.runs.filter((row) => !row.challenger).slice(-50).map((row) => row.seconds).sort((a, b) => a - b);
      parts.push(facts([["runs", count(last.run + 1)], ["of challengers", count(this.runs.filter((row) => row.challenger).length)],
        ["incumbent, last 50", time(incumbent[incumbent.length >> 1], "s"), "median"], ["decisions", count(this.events.length)]]),
      service_chart(this.runs, this.events, "s"), event_table([...this.events].reverse()));
    }
    if (best) parts.push(facts([["updates", count(best["update"])], ["stage", String(best["stage"])], ["best", time(best["best"], "s")]]), ...training_charts(this.metrics, "s"));
    if (parts.length === 1) parts.push(html("p", {}, "Nothing was written yet."));
    this.element.replaceChildren(...parts);
  }
}
