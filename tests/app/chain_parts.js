// Runs a model and its parts by ONNX Runtime on the same inputs: node chain_parts.js MODEL PARTS RUNTIME
// Prints the largest difference over the largest element of any output, as JSON.
'use strict';
const fs = require('fs');
const path = require('path');

// Numbers between -1 and 1 by a generator of 32 bits; the indices 0 and 1.
function draw(ort, {name, dtype, shape}) {
  const count = shape.reduce((a, b) => a * b, 1);
  let state = [...name].reduce((hash, letter) => (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0, 7);
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 4294967296;
  if (dtype === 'i64') return new ort.Tensor('int64', BigInt64Array.from({length: count}, () => BigInt(next() > 0.5)), shape);
  return new ort.Tensor('float32', Float32Array.from({length: count}, () => 2 * next() - 1), shape);
}

async function run(ort, file, values) {
  const session = await ort.InferenceSession.create(file, {logSeverityLevel: 3});
  const feeds = Object.fromEntries(session.inputNames.map((name) => [name, values[name]]));
  return session.run(feeds);
}

async function main([model, parts, runtime]) {
  const ort = require(path.resolve(runtime, 'node_modules/onnxruntime-node'));
  const manifest = JSON.parse(fs.readFileSync(path.join(parts, 'manifest.json')));
  const values = Object.fromEntries(manifest.inputs.map((input) => [input.name, draw(ort, input)]));
  const whole = await run(ort, model, values);
  for (const part of manifest.parts) Object.assign(values, await run(ort, path.join(parts, part.file), values));
  let error = 0;
  for (const {name} of manifest.outputs) {
    const expected = whole[name].data, found = values[name].data;
    let largest = 0, difference = 0;
    for (let i = 0; i < expected.length; ++i) {
      largest = Math.max(largest, Math.abs(Number(expected[i])));
      difference = Math.max(difference, Math.abs(Number(expected[i]) - Number(found[i])));
    }
    error = Math.max(error, largest > 0 ? difference / largest : difference);
  }
  console.log(JSON.stringify({error, parts: manifest.parts.length}));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`chain_parts: ${error.message}`);
  process.exit(1);
});
