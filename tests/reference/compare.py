#!/usr/bin/env python3
"""Compares `doppler simulate` with the reference simulator on random cases: start of every op, makespan, transfers.

Usage: compare.py --binary path/to/doppler [--cases 10000] [--seed 0] [--keep DIR]. Costs are small binary fractions, so
that times are exact and have to be equal. `random` draws ranks that the page does not give: its makespan has to be that
of some order of ranks under `priority`.
"""
import argparse
import concurrent.futures
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import simulator

TIMES = (0, 0, 0, 1, 1, 2, 3, 5)
BYTES = (0, 0, 1, 2, 8)
MOST_OPS = 14
MOST_OPS_AT_RANDOM = 5  # All orders of ranks are tried.


def random_case(rng):
    """Returns (graph, machine, placement, flags): what the files have, and how they are simulated."""
    discipline = rng.choice(("fifo", "fifo", "priority", "ordered", "random"))
    links = rng.choice(("free", "channels", "receiver", "shared"))
    count = rng.randint(1, MOST_OPS_AT_RANDOM if discipline == "random" else MOST_OPS)
    machine = random_machine(rng)
    placement = {"format": "doppler-placement", "version": 1,
                 "assignment": [rng.randrange(len(machine["devices"])) for _ in range(count)],
                 "priority": [rng.randrange(count) for _ in range(count)]}
    flags = ["--discipline", discipline, "--links", links, "--seed", str(rng.randrange(1000))]
    if rng.random() < 0.1:
        flags.append("--bulk-synchronous")
    graph = random_graph(rng, count)
    levels = simulator.Problem(graph, machine, placement["assignment"]).b_levels()
    if len(machine["devices"]) <= 2 and len(set(levels)) == count:
        # Without priorities the page ranks by b-level. Only means over two devices have no rounding, and the page does not
        # say which of two ops with equal b-levels comes first.
        del placement["priority"]
    return graph, machine, placement, flags


def random_graph(rng, count):
    """Returns a graph with edges against the order of ids, zero times, and several tensors per pair of ops."""
    ops = []
    for op in range(count):
        times = {"*": rng.choice(TIMES)}
        for kind in ("cpu", "gpu", "accelerator"):
            if rng.random() < 0.15:
                times[kind] = rng.choice(TIMES)
        ops.append({"name": f"op{op}", "times": times})
    order, tensors = rng.sample(range(count), count), []
    for position, producer in enumerate(order):
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            later = order[position + 1 :]
            tensor = {"producer": producer, "bytes": rng.choice(BYTES),
                      "consumers": rng.sample(later, min(len(later), rng.choice((0, 1, 1, 2, 4))))}
            if rng.random() < 0.6:
                tensor["transfer"] = rng.choice(TIMES)
            tensors.append(tensor)
    rng.shuffle(tensors)
    return {"format": "doppler-graph", "version": 1, "unitless": True, "ops": ops, "tensors": tensors}


def random_machine(rng):
    """Returns one to four unequal devices with unequal links."""
    devices = [{"name": f"d{i}", "type": rng.choice(("gpu", "tpu", "cpu")), "slots": rng.choice((1, 1, 1, 2, 3)),
                "slowdown": rng.choice((1, 1, 2, 0.5))} for i in range(rng.randint(1, 4))]
    names = [device["name"] for device in devices]
    pairs = []
    for _ in range(rng.randrange(3) if len(names) > 1 else 0):
        ends = rng.sample(names, 2)
        pair = {"between": ends} if rng.random() < 0.5 else {"from": ends[0], "to": ends[1]}
        changed = rng.choice(("latency", "cost_factor", "bytes_per_second", "channels"))
        pairs.append({**pair, changed: rng.choice((1, 2, 4))})
    default = {"latency": rng.choice((0, 0, 1)), "bytes_per_second": rng.choice((0, 1, 4)),
               "channels": rng.choice((1, 1, 2))}
    return {"format": "doppler-machine", "version": 1, "name": "random", "devices": devices,
            "links": {"default": default, "pairs": pairs}}


def differences(binary, case, directory):
    """Runs both simulators and returns how they differ, as text; nothing if they agree."""
    graph, machine, placement, flags = case
    for name, content in (("graph", graph), ("machine", machine), ("placement", placement)):
        (directory / f"{name}.json").write_text(json.dumps(content))
    done = subprocess.run([binary, "simulate", "graph.json", "placement.json", "--machine", "machine.json", *flags,
                           "-q", "--trace", "trace.json", "--json"], cwd=directory, capture_output=True, check=False)
    if done.returncode != 0:
        return f"doppler: exit code {done.returncode}, {done.stderr.decode(errors='replace')}"
    found, trace = json.loads(done.stdout), json.loads((directory / "trace.json").read_text())
    rules = simulator.Rules(flags[1], flags[3], "--bulk-synchronous" in flags)
    if rules.discipline == "random":
        return random_differences(case, rules, found["makespan"])
    problem = simulator.Problem(graph, machine, placement["assignment"], placement.get("priority"))
    expected = simulator.simulate(problem, rules)
    starts = {event["name"]: event["ts"] for event in trace["traceEvents"] if event.get("cat") == "op"}
    pairs = [(f"start of {op['name']}", starts.get(op["name"]), expected.start[i]) for i, op in enumerate(graph["ops"])]
    pairs += [("makespan", found["makespan"], expected.makespan),
              ("transfers", found["transfers"], {"count": expected.transfers, "bytes": expected.transferred_bytes})]
    return "; ".join(f"{what}: doppler {one}, reference {other}" for what, one, other in pairs if one != other)


def random_differences(case, rules, makespan):
    """Under `random` some order of ranks must give the makespan."""
    graph, machine, placement, _ = case
    rules = simulator.Rules("priority", rules.links, rules.bulk_synchronous)
    for rank in itertools.permutations(range(len(graph["ops"]))):
        problem = simulator.Problem(graph, machine, placement["assignment"], list(rank))
        if simulator.simulate(problem, rules).makespan == makespan:
            return ""
    return f"makespan: doppler {makespan}, reference: no order of ranks has it"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path, help="a directory for the cases that differ")
    parser.add_argument("--shown", type=int, default=5, help="of the cases that differ, the smallest are printed")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())

    def run(number):
        case = random_case(random.Random(f"{options.seed}:{number}"))
        with tempfile.TemporaryDirectory(prefix="doppler-reference-") as directory:
            return number, case, differences(binary, case, pathlib.Path(directory))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [outcome for outcome in pool.map(run, range(options.cases)) if outcome[2]]
    wrong.sort(key=lambda outcome: (len(outcome[1][0]["ops"]), outcome[0]))
    for number, case, text in wrong[: options.shown]:
        graph, machine, placement, flags = case
        print(f"case {number}: {' '.join(flags)}: {text}")
        if options.keep:
            kept = options.keep / f"case-{options.seed}-{number}"
            kept.mkdir(parents=True, exist_ok=True)
            for name, content in (("graph", graph), ("machine", machine), ("placement", placement)):
                (kept / f"{name}.json").write_text(json.dumps(content))
    print(f"{options.cases} cases, seed {options.seed}: {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
