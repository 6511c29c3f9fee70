// A page of results as `doppler report` makes it, for tests without the command.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

function literals(text) {
  return [...text.matchAll(/R"~~~\(([^]*?)\)~~~"(,|\})?/g)].reduce((parts, [, literal, end]) => {
    parts[parts.length - 1] += literal;
    if (end === ",") parts.push("");
    return parts;
  }, [""]);
}

export function page_of(results, title = "test") {
  const directory = mkdtempSync(join(tmpdir(), "doppler-page-")), bundle = join(directory, "bundle.cpp");
  execFileSync("node", [join(here, "../bundle.mjs"), bundle]);
  const [script, style, script_hash, style_hash] = literals(readFileSync(bundle, "utf8"));
  const data = JSON.stringify({ title, doppler: "test", results }).replaceAll("<", "\\u003c");
  const file = join(directory, "page.html");
  writeFileSync(file, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${script_hash}; style-src ${style_hash}; img-src data: blob:; base-uri 'none'; form-action 'none'"><title>x</title><style>${style}</style></head><body><main id="main"></main><script type="application/json" id="report">${data}</script><script>${script}</script></body></html>`);
  return file;
}
