// Runs an ONNX model by ONNX Runtime: the truth that results are compared with, and the rival of the times.
//
//   node onnxruntime.js MODEL --runtime DIR [--threads N] [--repeat N] [--warmup N] [--inputs DIR] [--outputs DIR]
//
// Inputs are NAME.npy in the directory; those that are missing are drawn and written there, so that others read the
// same. Outputs are written as NAME.npy. Prints one line of JSON: seconds per run, of creating the session and of the
// first run, and the largest resident memory.
'use strict';
const fs = require('fs');
const path = require('path');

const kTypes = {
  float32: ['<f4', Float32Array], float64: ['<f8', Float64Array], int64: ['<i8', BigInt64Array],
  int32: ['<i4', Int32Array], int8: ['|i1', Int8Array], uint8: ['|u1', Uint8Array], bool: ['|b1', Uint8Array],
};

function readNpy(file) {
  const bytes = fs.readFileSync(file);
  const headerBytes = bytes[6] === 1 ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const start = (bytes[6] === 1 ? 10 : 12);
  const header = bytes.toString('latin1', start, start + headerBytes);
  const descriptor = /'descr':\s*'([^']*)'/.exec(header)[1];
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)[1].split(',').filter((s) => s.trim()).map(Number);
  const [type, [, Array]] = Object.entries(kTypes).find(([, [text]]) => text === descriptor);
  const data = new Uint8Array(bytes.subarray(start + headerBytes));  // a copy, which is aligned
  return {type, shape, data: new Array(data.buffer)};
}

function writeNpy(file, tensor) {
  const [descriptor] = kTypes[tensor.type];
  const shape = tensor.dims.join(', ') + (tensor.dims.length === 1 ? ',' : '');
  let header = `{'descr': '${descriptor}', 'fortran_order': False, 'shape': (${shape}), }`;
  header += ' '.repeat(64 - (10 + header.length + 1) % 64) + '\n';
  const start = Buffer.alloc(10);
  start.write('\x93NUMPY\x01\x00', 'latin1');
  start.writeUInt16LE(header.length, 8);
  const data = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
  fs.writeFileSync(file, Buffer.concat([start, Buffer.from(header, 'latin1'), data]));
}

// A generator whose numbers are the same everywhere (mulberry32).
function generator(seed) {
  return () => {
    seed = (seed + 0x6D2B79F5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Numbers between -1 and 1; weights as a model with weights for inputs needs them to stay finite; the indices 0 and 1.
function draw(name, type, shape, weight) {
  const [, Array] = kTypes[type];
  const count = shape.reduce((a, b) => a * b, 1);
  const data = new Array(count);
  const next = generator([...name].reduce((hash, c) => (Math.imul(hash, 31) + c.charCodeAt(0)) | 0, 7));
  const inner = shape.length > 1 ? count / shape[0] : 1;
  const reach = weight && shape.length > 1 ? Math.sqrt(3 / inner) : 1;
  for (let i = 0; i < count; ++i) {
    const value = next();
    if (type === 'float32' || type === 'float64')
      data[i] = weight && shape.length < 2 ? 0.5 + value : (2 * value - 1) * reach;
    else
      data[i] = Array === BigInt64Array ? BigInt(Math.floor(2 * value)) : Math.floor(2 * value);
  }
  return {type, shape, data};
}

async function main() {
  const options = {threads: '1', repeat: '1', warmup: '0', level: 'all'};
  const [model, ...rest] = process.argv.slice(2);
  for (let i = 0; i + 1 < rest.length; i += 2) options[rest[i].replace(/^--/, '')] = rest[i + 1];
  const ort = require(path.resolve(options.runtime, 'node_modules/onnxruntime-node'));
  const clock = () => Number(process.hrtime.bigint()) * 1e-9;
  const settings = {
    intraOpNumThreads: Number(options.threads), interOpNumThreads: 1, executionMode: 'sequential',
    graphOptimizationLevel: options.level, logSeverityLevel: 3,
    extra: {session: {intra_op: {allow_spinning: '1'}}},
  };
  if (options.optimized) settings.optimizedModelFilePath = options.optimized;
  const begin = clock();
  const session = await ort.InferenceSession.create(model, settings);
  const created = clock() - begin;
  const feeds = {};
  const data = session.inputMetadata.length > 8;  // then most of them are weights
  for (const {name, type, shape} of session.inputMetadata) {
    const file = options.inputs && path.join(options.inputs, `${encodeURIComponent(name)}.npy`);
    const sizes = shape.map((size) => (typeof size === 'number' ? size : 1));
    const weight = data && name !== session.inputMetadata[0].name;
    const tensor = file && fs.existsSync(file) ? readNpy(file) : draw(name, type, sizes, weight);
    feeds[name] = new ort.Tensor(tensor.type, tensor.data, tensor.shape);
    if (file && !fs.existsSync(file)) writeNpy(file, feeds[name]);
  }
  const first = clock();
  let results = await session.run(feeds);
  const firstRun = clock() - first;
  for (let i = 0; i < Number(options.warmup); ++i) await session.run(feeds);
  const times = [];
  for (let i = 0; i < Number(options.repeat); ++i) {
    const start = clock();
    results = await session.run(feeds);
    times.push(clock() - start);
  }
  if (options.outputs)
    for (const name of session.outputNames)
      writeNpy(path.join(options.outputs, `${encodeURIComponent(name)}.npy`), results[name]);
  const inputs = Object.keys(feeds);
  console.log(JSON.stringify({times, created, first: firstRun, inputs, outputs: session.outputNames,
                              peak_bytes: process.resourceUsage().maxRSS * 1024}));
}

main().catch((error) => {
  console.error(`onnxruntime: ${error.message}`);
  process.exit(1);
});
