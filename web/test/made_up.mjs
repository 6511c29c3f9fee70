// Schedules for tests of the page: any number of ops in a few modules on a few devices, no results of Doppler.
export function made_up(ops, devices, { hostile = false } = {}) {
  let state = 12345;
  const draw = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  const free = new Array(devices).fill(0), end = [], columns = { name: [], kind: [], device: [], slot: [], ready: [], start: [], end: [], cause: [], input_begin: [0], input: [] };
  const transfers = { producer: [], src: [], dst: [], queued: [], start: [], end: [], bytes: [] };
  for (let op = 0; op < ops; ++op) {
    const device = Math.floor(draw() * devices), inputs = [];
    for (let i = 0; i < 2 && op > 0; ++i) inputs.push(Math.max(0, op - 1 - Math.floor(draw() * 40)));
    let ready = 0;
    for (const producer of new Set(inputs)) {
      columns.input.push(producer);
      let there = end[producer];
      if (columns.device[producer] !== device) {
        transfers.producer.push(producer);
        transfers.src.push(columns.device[producer]);
        transfers.dst.push(device);
        transfers.queued.push(there);
        transfers.start.push(there);
        there += 2e-4;
        transfers.end.push(there);
        transfers.bytes.push(1 << 20);
      }
      ready = Math.max(ready, there);
    }
    columns.input_begin.push(columns.input.length);
    const start = Math.max(ready, free[device]), duration = 1e-4 + 9e-4 * draw();
    columns.name.push(hostile && op === 3 ? "</script><img src=x onerror=alert(1)>" : `model/layer${Math.floor((op * 24) / ops)}/block${op % 7}/op${op}`);
    columns.kind.push(op % 5);
    columns.device.push(device);
    columns.slot.push(0);
    columns.ready.push(ready);
    columns.start.push(start);
    end.push((free[device] = start + duration));
    columns.end.push(free[device]);
    columns.cause.push(0);
  }
  const makespan = Math.max(...free), last = columns.end.indexOf(makespan), chain = { transfer: [], id: [], waits: [] };
  for (let op = last, i = 0; op !== undefined && i < 60; ++i) {
    chain.transfer.unshift(0);
    chain.id.unshift(op);
    chain.waits.unshift(1);
    op = columns.input[columns.input_begin[op]];
  }
  return {
    unit: "s", makespan, tick: 1, measured: false, kinds: ["matmul", "conv", "add", "relu", "softmax"], causes: ["search"], ops: columns, transfers,
    devices: free.map((_, i) => ({ name: `gpu${i}`, memory: 16 * 2 ** 30, slots: 1, memory_times: [0, makespan / 3, makespan / 2], memory_bytes: [2 ** 30, 8 * 2 ** 30, 4 * 2 ** 30] })),
    types: ["gpu"], type_of_device: free.map(() => 0), time_on: [], elsewhere: { op: [1], makespan: free.map((_, d) => [makespan * (1 + d / 10)]) }, waits: ["nothing", "data"], chain,
    gaps: { device: [0], slot: [0], start: [0], end: [columns.start[0]], waits: [1] },
  };
}

// As files have it: ends as durations, transfers by start and one after the other.
export function written(schedule) {
  const { ops, transfers } = schedule, order = [...transfers.start.keys()].sort((a, b) => transfers.start[a] - transfers.start[b]);
  const sorted = (column) => order.map((i) => column[i]), start = sorted(transfers.start);
  return { ...schedule,
    ops: { ...ops, takes: ops.end.map((end, i) => end - ops.start[i]), waited: ops.ready.map((ready, i) => ops.start[i] - ready), end: undefined, ready: undefined },
    transfers: { producer: sorted(transfers.producer), src: sorted(transfers.src), dst: sorted(transfers.dst), bytes: sorted(transfers.bytes),
      later: start.map((at, i) => at - (start[i - 1] ?? 0)), takes: sorted(transfers.end).map((end, i) => end - start[i]), waited: sorted(transfers.queued).map((queued, i) => start[i] - queued) } };
}

export const place_result = (name, schedule) => ({
  result: "place", name, graph: "g.json", machine: "made up", method: "auto", winner: "anneal", makespan: schedule.makespan, lower_bound: 0.9 * schedule.makespan,
  bound_kind: "work", gap: 0.11, optimal: false, feasible: true, unit: "s", transfers: { count: schedule.transfers.start.length, bytes: 2 ** 20 * schedule.transfers.start.length },
  devices: schedule.devices.map((device) => ({ name: device.name, ops: 1, busy: 0.8 * schedule.makespan, utilisation: 0.8, peak_memory: 2 ** 33, memory: device.memory })), schedule: written(schedule),
});
