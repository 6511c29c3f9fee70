// The page in a real browser: DOPPLER=path node test/run.mjs [--screenshots DIR]. Reports are made by the command from real
// results; what a person sees and does is done through Chromium.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, after, before } from "node:test";
import { chromium } from "playwright-core";

const doppler = process.env.DOPPLER, shots = process.env.SCREENSHOTS;
assert(doppler, "DOPPLER: required the path of the command");
const browser_path = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const directory = mkdtempSync(join(tmpdir(), "doppler-report-"));
const at = (name) => join(directory, name);
const call = (...words) => execFileSync(doppler, words.map(String), { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const most_seconds_for_large = 3, least_frames_per_second = 20;
let browser;

before(async () => {
  assert(browser_path, "Chromium: found none; required Debian's package chromium");
  browser = await chromium.launch({ executablePath: browser_path, args: ["--no-sandbox"] });
  if (shots) mkdirSync(shots, { recursive: true });
  call("generate", "llama-layer", "--parts", 4, "-o", at("g.json"));
  call("place", at("g.json"), "--machine", "p100x4", "--method", "heft", "--timeline", "--json", at("heft.json"));
  call("place", at("g.json"), "--machine", "p100x4", "--method", "memory_greedy", "--timeline", "--json", at("greedy.json"));
});
after(() => browser?.close());

// Opens a file or an address; whatever the page complains about is an error of the test.
async function opened(address, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.complaints = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) page.complaints.push(message.text()); });
  page.on("pageerror", (error) => page.complaints.push(error.message));
  await page.goto(address.includes("://") ? address : `file://${address}`);
  await page.waitForSelector("html[data-drawn]");
  return page;
}
async function done(page, name) {
  if (shots && name) await page.screenshot({ path: join(shots, `${name}.png`) });
  assert.deepEqual(page.complaints, []);
  await page.close();
}
const ops_of = (file) => JSON.parse(readFileSync(at(file), "utf8")).schedule.ops.name;

test("a placement has a bar for every op, and a person can search, walk, zoom and select by keys", async () => {
  call("report", at("heft.json"), "-o", at("place.html"), "--title", "LLAMA-LAYER");
  assert(statSync(at("place.html")).size < 2e6);
  const page = await opened(at("place.html"));
  assert.equal(await page.title(), "LLAMA-LAYER");
  const names = ops_of("heft.json"), canvas = page.locator("canvas");
  assert.equal(await canvas.getAttribute("data-bars"), String(names.length));
  await page.getByRole("searchbox").fill(names[7]);
  const status = page.locator(".status");
  assert.match(await status.textContent(), new RegExp(names[7].replace(/[.*+?^${}()|[\]\\]/g, "\\$&")));
  assert.match(await page.locator(".details").textContent(), /start.*takes.*ready since/s);
  await page.getByRole("searchbox").fill("");
  await canvas.focus();
  await page.keyboard.press("Escape");
  await page.keyboard.press("n");
  assert.match(await page.locator(".details").textContent(), /critical chainstep 1 of \d+/);
  await page.keyboard.press("n");
  assert.match(await page.locator(".details").textContent(), /step 2 of/);
  assert.match(await page.locator(".details").textContent(), /the whole, were it ongpu\d: .* \([+−]\d+\.\d %\)/);
  const before_zoom = await canvas.screenshot();
  await page.keyboard.press("+");
  await page.waitForTimeout(100);
  assert.notDeepEqual(await canvas.screenshot(), before_zoom);
  await page.keyboard.press("0");
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 300, box.y + 35);
  await page.mouse.move(box.x + 304, box.y + 36);
  const tip = page.locator(".tip");
  assert.equal(await tip.isVisible(), true);
  assert.match(await tip.textContent(), / on gpu0, .* to /);
  for (const format of ["SVG", "PNG"]) {
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: `Save what is shown as ${format}` }).click()]);
    const content = readFileSync(await saved.path());
    assert(format === "SVG" ? content.includes("<svg") : content.subarray(1, 4).toString() === "PNG" && content.length > 5000);
  }
  assert((await page.locator(".memory svg").count()) >= 4, "memory of every device");
  assert((await page.locator(".graph .box").count()) > 4, "boxes of the graph");
  await done(page, "place");
});

test("two placements share one time axis, and their difference is told", async () => {
  call("report", at("greedy.json"), at("heft.json"), "-o", at("two.html"));
  const page = await opened(at("two.html"));
  assert.equal(await page.locator("canvas").count(), 2);
  assert.match(await page.locator("main").textContent(), /\d+\.\d %\) shorter; both are on one time axis/);
  const second = page.locator("canvas").nth(1), whole = await second.screenshot();
  await page.locator("canvas").first().focus();
  await page.keyboard.press("+");
  await page.waitForTimeout(100);
  assert.notDeepEqual(await second.screenshot(), whole, "what zooms one zooms the other");
  await done(page, "two");
});

test("a comparison sorts by a click on a heading", async () => {
  call("compare", at("g.json"), "--machine", "p100x4", "--methods", "single,heft,enumerative", "--json", at("c.json"));
  call("report", at("c.json"), "-o", at("compare.html"));
  const page = await opened(at("compare.html"));
  const first = () => page.locator("tbody tr").first().locator("td").first().textContent();
  assert.match(await page.locator("tbody tr").first().textContent(), /\d+ % \d+ % \d+ % \d+ %/, "utilisation of four devices");
  await page.getByRole("button", { name: "makespan" }).click();
  const best = await first();
  await page.getByRole("button", { name: "makespan" }).click();
  assert.equal(await first(), "single");
  assert.notEqual(best, "single");
  await done(page, "compare");
});

test("a model that is cut is drawn by modules", async () => {
  call("generate", "bert-base", "--layers", 2, "--batch", 8, "-o", at("bert.onnx"));
  call("place", at("bert.onnx"), "--machine", "l4:4", "--shard", 4, "--method", "heft", "--html", at("bert.html"));
  const page = await opened(at("bert.html"));
  assert(Number(await page.locator("canvas").getAttribute("data-bars")) > 40);
  assert((await page.locator(".graph .box").count()) > 4);
  await done(page, "bert");
});

test("names from files stay text", async () => {
  const graph = JSON.parse(readFileSync(at("g.json"), "utf8")), bad = "</script><script>document.title='owned'</script>";
  const text = JSON.stringify(graph).replaceAll(JSON.stringify(graph.ops[5].name).slice(1, -1), bad.replaceAll('"', '\\"'));
  writeFileSync(at("bad.json"), text);
  call("place", at("bad.json"), "--machine", "p100x4", "--method", "heft", "--html", at("bad.html"));
  const page = await opened(at("bad.html"));
  assert.notEqual(await page.title(), "owned");
  await page.getByRole("searchbox").fill("</script>");
  assert.match(await page.locator(".details").textContent(), /<\/script><script>/);
  await done(page);
});

test("dark, print and screen readers", async () => {
  const page = await opened(at("place.html"), { colorScheme: "dark" });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await background(), "rgb(20, 22, 26)");
  await page.evaluate(() => document.querySelectorAll("canvas").length);
  if (shots) await page.screenshot({ path: join(shots, "dark.png") });
  await page.emulateMedia({ media: "print" });
  assert.equal(await background(), "rgb(255, 255, 255)");
  assert.equal(await page.locator(".controls").first().isVisible(), false);
  await page.emulateMedia({ media: "screen" });
  const session = await page.context().newCDPSession(page); // the policy of the page lets no other script in, so it comes from outside
  await session.send("Runtime.evaluate", { expression: axe });
  const { result } = await session.send("Runtime.evaluate", { expression: "axe.run(document).then((found) => JSON.stringify(found.violations.map((v) => [v.id, v.nodes.map((n) => n.target)])))", awaitPromise: true });
  assert.equal(result.value, "[]");
  await done(page);
});

test("a hundred thousand ops open at once and stay fluid", async () => {
  call("generate", "layered", "--ops", 100000, "--width", 300, "-o", at("large.json"));
  call("place", at("large.json"), "--machine", "p100x8", "--method", "etf", "--html", at("large.html"));
  assert(statSync(at("large.html")).size < 15e6, `${statSync(at("large.html")).size} bytes`);
  const begin = performance.now(), page = await opened(at("large.html")), seconds = (performance.now() - begin) / 1e3;
  const frame = await page.evaluate(async () => {
    const canvas = document.querySelector("canvas"), times = [];
    for (let i = 0; i < 30; ++i) {
      const start = performance.now();
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: i < 15 ? -120 : 120, clientX: 700, clientY: 400, cancelable: true }));
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      times.push((performance.now() - start) / 2);
    }
    return times.sort((a, b) => a - b)[15];
  });
  console.log(`100 000 ops: drawn in ${seconds.toFixed(2)} s, ${frame.toFixed(1)} ms per frame, ${(statSync(at("large.html")).size / 1e6).toFixed(1)} MB`);
  if (!process.env.DOPPLER_BUSY) {
    assert(seconds < most_seconds_for_large, `${seconds} s`);
    assert(1e3 / frame > least_frames_per_second, `${frame} ms per frame`);
  }
  await done(page, "large");
});

test("a training and a validation are drawn", async () => {
  call("train", at("g.json"), "--machine", "p100x4", "--episodes", 400, "--out", at("run"));
  call("report", at("run"), "-o", at("train.html"));
  let page = await opened(at("train.html"));
  assert((await page.locator("svg.chart").count()) >= 1);
  await done(page, "train");
  call("train", at("g.json"), "--machine", "p100x4", "--episodes", 400, "--seed", 1, "--out", at("run1"));
  call("report", at("run"), at("run1"), "-o", at("trainings.html"));
  page = await opened(at("trainings.html"));
  assert((await page.locator("section[aria-label='2 trainings together'] polygon").count()) >= 2, "bands");
  assert((await page.locator("section[aria-label='2 trainings together'] circle").count()) >= 1, "the stage of one update is a dot");
  await done(page, "trainings");
  call("generate", "ffnn", "--batch", 64, "--input", 16, "--hidden", 128, "--output-width", 16, "--parts", 4, "-o", at("f.json"));
  call("validate", at("f.json"), "--calibrate", "--placements", 6, "--repeat", 2, "--json", at("v.json"));
  call("report", at("v.json"), "-o", at("validate.html"));
  page = await opened(at("validate.html"));
  assert.equal(await page.locator("circle").count(), 6);
  await done(page, "validate");
});

test("a service is seen while it runs, and by nobody else", { timeout: 60_000 }, async () => {
  writeFileSync(at("log.jsonl"), "");
  call("place", at("g.json"), "--machine", "p100x4", "--method", "heft", "-o", at("p.json"));
  const service = spawn(doppler, ["run", at("g.json"), at("p.json"), "--machine", "p100x4", "--devices", "emulated", "--learn", "--runs", "60",
    "--drift", "gpu1=2@20", "--log", at("log.jsonl")], { stdio: "ignore" });
  const watch = spawn(doppler, ["watch", at("log.jsonl")], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const address = await new Promise((resolve, reject) => {
      watch.stdout.on("data", (text) => resolve(String(text).match(/http:\S+/)[0]));
      watch.on("exit", () => reject(new Error("doppler watch ended")));
    });
    const page = await opened(address);
    while ((await page.locator(".live circle").count()) <= 20) await page.waitForTimeout(100); // the policy forbids waitForFunction()
    assert.match(await page.locator(".live").textContent(), /runs/);
    const port = new URL(address).port;
    const status_for = (host) => new Promise((resolve) => get({ port, path: "/", headers: { Host: host } }, (answer) => resolve(answer.resume().statusCode)));
    assert.equal(await status_for(`localhost:${port}`), 200);
    assert.equal(await status_for("elsewhere.example"), 403);
    assert.equal((await fetch(address, { method: "POST" })).status, 404);
    const silent = await fetch(new URL("events", address)); // a client that never reads
    await page.waitForTimeout(300);
    await done(page, "watch");
    await silent.body.cancel();
    await new Promise((resolve) => { service.on("exit", resolve); if (service.exitCode !== null) resolve(); });
    const ended = new Promise((resolve) => watch.on("exit", resolve));
    watch.kill("SIGINT");
    assert.equal(await ended, 130);
  } finally {
    service.kill();
    watch.kill();
  }
});
