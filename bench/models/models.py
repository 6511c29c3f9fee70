#!/usr/bin/env python3
"""Runs whole models by the engine and by ONNX Runtime, compares what they compute and how long it takes.

  bench/models/models.py truth       relative errors: one device, two devices, twice the same bits
  bench/models/models.py speed       times on one device against ONNX Runtime on one thread; memory; first runs
  bench/models/models.py placement   Inception-V3 on two devices by several methods, measured

Models are those of 'doppler generate' with weights of seed 1, and ../shared/data/onnx where it is there, whose weights
are drawn. Turns alternate, each in a process of its own; times are lower deciles over all runs of all turns.
"""
import argparse
import array
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ["resnet50", "inception-v3", "mobilenet-v3", "bert-base", "vit-b16"]
# A decoder of two layers, which has every node of the full one.
SMALL = {"llama-decoder": ["--layers", "2", "--width", "512", "--heads", "8", "--hidden", "1376", "--vocabulary", "1000",
                           "--sequence", "64"]}
TYPES = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|b1": "B", "|u1": "B", "|i1": "b"}


def read_npy(path):
    data = pathlib.Path(path).read_bytes()
    length = int.from_bytes(data[8:10], "little")
    header = data[10:10 + length].decode("latin1")
    values = array.array(TYPES[re.search(r"'descr': '([^']*)'", header).group(1)])
    values.frombytes(data[10 + length:])
    return values


def relative_error(ours, theirs):
    """The largest difference over the largest magnitude; not a number where either has one."""
    if len(ours) != len(theirs):
        return math.inf
    if any(map(math.isnan, ours)) or any(map(math.isnan, theirs)):
        return math.nan
    scale = max(map(abs, theirs)) or 1.0
    return max(abs(a - b) for a, b in zip(ours, theirs)) / scale


def lower_decile(times):
    return sorted(times)[len(times) // 10]


class Bench:
    def __init__(self, options):
        self.doppler = options.doppler
        self.work = pathlib.Path(options.work)
        self.work.mkdir(parents=True, exist_ok=True)
        made = subprocess.run([ROOT / "tools/onnxruntime"], capture_output=True, text=True)
        if made.returncode:
            sys.stderr.write(made.stderr)
            sys.exit(made.returncode)
        self.runtime = ROOT / made.stdout.strip()
        self.one, self.two = (self.box(count) for count in (1, 2))

    def box(self, count):
        """A machine of this many cores, whose speeds nobody reads."""
        path = self.work / f"cores{count}.json"
        path.write_text(json.dumps({
            "format": "doppler-machine", "version": 1, "name": f"{count} cores",
            "devices": [{"name": "cpu", "count": count, "type": "cpu", "memory_bytes_per_second": 1e10,
                         "rates": [{"flops_per_second": 1e11}]}],
            "links": {"default": {"latency": 1e-5, "bytes_per_second": 1e10}}}))
        return path

    def run(self, command):
        """Runs a command, returns its output; `wall` is then how long it took."""
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate()
        if process.returncode:
            sys.exit(f"{' '.join(map(str, command[:3]))} …: ended with {process.returncode}\n{err.decode()}")
        self.wall = time.monotonic() - begin
        return out.decode()

    def model(self, name):
        if name.startswith("shared/"):
            return ROOT.parent / "shared/data/onnx" / f"{name.removeprefix('shared/')}.onnx"
        path = self.work / f"{name}.onnx"
        if not path.exists():
            self.run([self.doppler, "generate", name, "--weights", "1", "-o", path, *SMALL.get(name, [])])
        return path

    def theirs(self, name, **flags):
        inputs = self.work / name / "inputs"
        inputs.mkdir(parents=True, exist_ok=True)
        command = ["node", ROOT / "bench/models/onnxruntime.js", self.model(name), "--runtime", self.runtime,
                   "--inputs", inputs]
        for key, value in flags.items():
            command += [f"--{key}", value]
        return json.loads(self.run(command))

    def ours(self, name, machine, *flags):
        command = [self.doppler, "run", self.model(name), *flags, "--machine", machine, "--no-one-device", "--json", "-",
                   "--quiet"]
        for path in sorted((self.work / name / "inputs").glob("*.npy")):
            command += ["--input", f"{urllib.parse.unquote(path.stem)}={path}"]
        return json.loads(self.run(command))

    def truth(self, names):
        print("| model | one device | two devices | twice the same bits |\n|---|---|---|---|")
        for name in names:
            truth = self.work / name / "theirs"
            truth.mkdir(parents=True, exist_ok=True)
            outputs = self.theirs(name, outputs=truth)["outputs"]
            errors, bits = {}, {}
            for label, machine in (("one", self.one), ("two", self.two), ("again", self.two)):
                results = self.work / name / label
                self.ours(name, machine, "--deterministic", "--output", results, "--repeat", "1", "--warmup", "0")
                errors[label] = max(relative_error(read_npy(results / f"{o}.npy"), read_npy(truth / f"{o}.npy"))
                                    for o in outputs)
                bits[label] = [(results / f"{o}.npy").read_bytes() for o in outputs]
            same = "yes" if bits["two"] == bits["again"] else "no"
            print(f"| {name} | {errors['one']:.1e} | {errors['two']:.1e} | {same} |", flush=True)
            if not max(errors.values()) <= 1e-4 or same == "no":
                sys.exit(f"{name}: found errors {errors}, same bits: {same}; required at most 1e-4 and the same bits")

    def speed(self, names, turns, repeat):
        print("| model | doppler | ONNX Runtime | ratio | first run | theirs | memory | theirs |\n|---|---|---|---|---|---|---|---|")
        ratios = []
        for name in names:
            ours, theirs, first, peaks = [], [], [], []
            self.theirs(name)  # makes the inputs
            for _ in range(turns):
                answer = self.theirs(name, threads=1, repeat=repeat, warmup=2)
                theirs += answer["times"]
                ours += self.ours(name, self.one, "--repeat", repeat, "--warmup", 2)["times"]
                first.append(answer["created"] + answer["first"])
                peaks.append(answer["peak_bytes"])
            self.ours(name, self.one, "--repeat", 1, "--warmup", 0)
            began, memory = self.wall, self.memory_of(name)
            ratio = lower_decile(ours) / lower_decile(theirs)
            ratios.append(ratio)
            print(f"| {name} | {lower_decile(ours) * 1e3:.1f} ms | {lower_decile(theirs) * 1e3:.1f} ms | {ratio:.2f} | "
                  f"{began:.2f} s | {min(first):.2f} s | {memory / 2**20:.0f} MiB | {min(peaks) / 2**20:.0f} MiB |",
                  flush=True)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\ngeometric mean of the ratios: {mean:.3f}")

    def memory_of(self, name):
        command = [self.doppler, "run", self.model(name), "--machine", self.one, "--no-one-device", "--repeat", "1",
                   "--warmup", "0", "--quiet"]
        child = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_maxrss * 1024

    def placement(self, turns, repeat):
        name, machine = "inception-v3", self.work / "box.json"
        self.theirs(name)
        self.run([self.doppler, "calibrate", self.model(name), "--count", "2", "--quiet", "-o", machine])
        methods, times = ["single", "heft", "anneal", "doppler"], {}
        for method in methods:
            self.run([self.doppler, "place", self.model(name), "--machine", machine, "--method", method, "--time", "10s",
                      "--quiet", "-o", self.work / f"{method}.json"])
        for _ in range(turns):
            for method in methods:
                answer = self.ours(name, machine, self.work / f"{method}.json", "--repeat", repeat, "--warmup", 2)
                times.setdefault(method, []).extend(answer["times"])
                predicted = answer["predicted"]
                times.setdefault(method + " predicted", predicted)
        print("| method | measured | predicted | speed-up |\n|---|---|---|---|")
        for method in methods:
            print(f"| {method} | {lower_decile(times[method]) * 1e3:.1f} ms | {times[method + ' predicted'] * 1e3:.1f} ms "
                  f"| {lower_decile(times['single']) / lower_decile(times[method]):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["truth", "speed", "placement"])
    parser.add_argument("--models", help="names, with commas between them; default: the zoo")
    parser.add_argument("--doppler", default=ROOT / "build/release/bin/doppler", type=pathlib.Path)
    parser.add_argument("--work", default=ROOT / "build/models", help="where models, inputs and results go")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    bench = Bench(options)
    shared = [f"shared/{path.stem}" for path in sorted((ROOT.parent / "shared/data/onnx").glob("*.onnx"))]
    names = options.models.split(",") if options.models else None
    if options.what == "truth":
        bench.truth(names or ZOO + list(SMALL) + shared)
    elif options.what == "speed":
        bench.speed(names or ZOO, options.turns, options.repeat)
    else:
        bench.placement(options.turns, options.repeat)


if __name__ == "__main__":
    main()
