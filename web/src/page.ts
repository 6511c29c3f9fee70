// The page: reads the report that is in it and draws its results.

import { read_report, type Result } from "./data";
import { button, html, save_as } from "./dom";
import { Live } from "./live";
import { section, trainings_together } from "./views";

function save(): void {
  const copy = document.documentElement.cloneNode(true) as HTMLElement;
  save_as("report.html", new Blob([`<!doctype html>${copy.outerHTML}`], { type: "text/html" }));
}

// Placements of one graph come in pairs on one time axis.
function pairs(results: Result[]): [Result, Result?][] {
  const drawable = (result: Result | undefined): boolean => result?.schedule !== undefined && ["simulation", "place"].includes(result.result);
  const list: [Result, Result?][] = [];
  for (let i = 0; i < results.length; ++i) {
    const next = results[i + 1];
    if (drawable(results[i]) && drawable(next) && results[i]!.schedule!.unit === next!.schedule!.unit) list.push([results[i]!, results[++i]]);
    else list.push([results[i]!]);
  }
  return list;
}

function show(): void {
  const main = document.getElementById("main")!;
  const report = read_report(document.getElementById("report")!.textContent ?? "");
  document.title = report.title;
  const sections = pairs(report.results).map(([result, beside]) => section(result, beside));
  const trainings = report.results.filter((result) => result.result === "training" && result.metrics !== undefined);
  if (trainings.length > 1) sections.unshift(trainings_together(trainings));
  main.replaceChildren(html("header", {}, html("h1", {}, report.title), html("p", { class: "help" }, `made by doppler ${report.doppler}`)));
  if (sections.length > 1) {
    sections.forEach((part, i) => (part.id = `result-${i}`));
    main.append(html("nav", { "aria-label": "Results" }, html("ul", {},
      ...sections.map((part) => html("li", {}, html("a", { href: `#${part.id}` }, part.getAttribute("aria-label") ?? ""))))));
  }
  main.append(...sections);
  if (report.live) main.append(button("save this page", "Save this page as a file", save), new Live(new EventSource("events")).element);
  document.documentElement.dataset["drawn"] = "true";
}

try {
  if (!document.documentElement.dataset["drawn"]) show(); // a page that was saved is drawn already
} catch (error) {
  document.getElementById("main")!.replaceChildren(html("p", { role: "alert" }, `This report cannot be drawn: ${String(error)}`));
  throw error;
}
