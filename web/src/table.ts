// Tables that sort by a click or a key on a heading.

import { html } from "./dom";

export interface Column {
  title: string;
  help?: string; // explains the heading
  numeric?: boolean;
}
export interface Cell {
  text: string;
  value?: number; // what is sorted by; undefined: the text
  share?: number; // 0 to 1: a bar behind the text
  strong?: boolean;
}

export function table(caption: string, columns: Column[], rows: Cell[][]): HTMLElement {
  const body = html("tbody");
  const headings: HTMLTableCellElement[] = [];
  const fill = (sorted: Cell[][]): void => {
    body.replaceChildren(...sorted.map((row) => html("tr", {}, ...row.map((cell, i) => {
      const item = html("td", { class: columns[i]?.numeric ? "number" : undefined }, cell.strong ? html("strong", {}, cell.text) : cell.text);
      if (cell.share !== undefined) {
        item.classList.add("bar");
        item.style.setProperty("--share", `${Math.round(1e4 * Math.min(1, Math.max(0, cell.share))) / 100}%`);
      }
      return item;
    }))));
  };
  const sort_by = (index: number): void => {
    const heading = headings[index]!, descending = heading.getAttribute("aria-sort") === "ascending";
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sign = descending ? -1 : 1;
    fill([...rows].sort((a, b) => {
      const x = a[index]!, y = b[index]!;
      if (columns[index]!.numeric) return sign * ((x.value ?? Infinity) - (y.value ?? Infinity)) || 0;
      return sign * x.text.localeCompare(y.text);
    }));
  };
  columns.forEach((column, index) => {
    const press = html("button", { type: "button", class: "sort", title: column.help }, column.title);
    press.addEventListener("click", () => sort_by(index));
    headings.push(html("th", { scope: "col", class: column.numeric ? "number" : undefined }, press));
  });
  fill(rows);
  return html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    html("table", {}, html("caption", {}, caption), html("thead", {}, html("tr", {}, ...headings)), body));
}

// Names and values, two to a line.
export function facts(pairs: [string, string, string?][]): HTMLElement {
  return html("dl", { class: "facts" },
    ...pairs.map(([name, value, help]) => html("div", { title: help }, html("dt", {}, name), html("dd", {}, value))));
}
