// Bundles the page for the build: node bundle.mjs OUTPUT.cpp. The result holds script and style as text, and their hashes
// for the Content-Security-Policy, so that the installed command needs neither node nor network.
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const bundled = async (entry) => {
  const result = await build({ entryPoints: [join(here, "src", entry)], bundle: true, minify: true, write: false, target: "es2022",
    format: "iife", charset: "ascii", legalComments: "none" });
  return result.outputFiles[0].text.trimEnd();
};
const script = await bundled("page.ts"), style = await bundled("page.css");
if (script.includes("</script")) throw new Error("the script would end its own element");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
// Literals of at most 16 KiB: compilers need not take longer ones.
const literal = (text) => text.match(/[^]{1,16000}/gu).map((part) => `R"~~~(${part})~~~"`).join("\n    ");
writeFileSync(process.argv[2], `// Made by web/bundle.mjs.
#include "doppler/report/page_bundle.h"

namespace doppler {

const PageBundle* page_bundle() {
  static constexpr PageBundle kBundle = {
    ${literal(script)},
    ${literal(style)},
    ${literal(hash(script))},
    ${literal(hash(style))}};
  return &kBundle;
}

}  // namespace doppler
`);
