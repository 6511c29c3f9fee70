#!/usr/bin/env python3
"""Runs whole models by the engine and by ONNX Runtime, compares what they compute and how long it takes.

  bench/models/models.py truth       relative errors: one device, two with ops dealt at random, twice the same bits
  bench/models/models.py speed       times on one device against ONNX Runtime on one thread; memory; first runs
  bench/models/models.py placement   Inception-V3 on two devices by several methods, measured
  bench/models/models.py sharded     two devices and ops in blocks (--shard 2) against one device; needs no ONNX Runtime

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
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ["resnet50", "inception-v3", "mobilenet-v3", "bert-base", "vit-b16"]
# A decoder of two layers, which has every node of the full one.
SMALL = {"llama-decoder": ["--layers", "2", "--width", "512", "--heads", "8", "--hidden", "1376", "--vocabulary",
                           "1000", "--sequence", "64"]}
MOST_ERROR = 1e-4  # in f32, whose sums are in another order
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


def onnx_runtime():
    """Returns the directory of ONNX Runtime; ends with the tool's code, which says to skip, where there is none."""
    made = subprocess.run([ROOT / "tools/onnxruntime"], capture_output=True, text=True)
    if made.returncode:
        sys.stderr.write(made.stderr)
        sys.exit(made.returncode)
    return ROOT / made.stdout.strip()


def lower_decile(times):
    return sorted(times)[len(times) // 10]


class Bench:
    """Runs models by the command and by ONNX Runtime on the same inputs. A name is one of 'doppler generate', with
    `sizes` as its flags, 'shared/NAME', or the path of a file."""

    def __init__(self, doppler, work, sizes, runtime=None):
        self.doppler, self.work, self.sizes = doppler, pathlib.Path(work), sizes
        self.work.mkdir(parents=True, exist_ok=True)
        self.runtime = runtime or onnx_runtime()
        self.one, self.two = (self.box(count) for count in (1, 2))

    def box(self, count):
        """A machine of this many cores, whose speeds nobody reads."""
        path = self.work / f"cores{count}.json"
        path.write_text(json.dumps({
            "format": "doppler-machine", "version": 1, "name": f"{count} cores",
            "devices": [{"name": "cpu", "count": count, "type": "cpu", "memory_bytes_per_second": 1e10,
                         "rates": [{"flops_per_second": 1e11}]}],
            "links": {"model": "shared", "default": {"latency": 1e-6, "bytes_per_second": 1e10}}}))
        return path

    def run(self, command):
        """Runs a command, returns its output; `wall` is then how long it took and `peak` its largest memory."""
        words = [str(word) for word in command]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            begin = time.monotonic()
            process = subprocess.Popen(words, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            self.wall, self.peak = time.monotonic() - begin, usage.ru_maxrss * 1024
            process.returncode = os.waitstatus_to_exitcode(status)
            for file in (out, err):
                file.seek(0)
            if process.returncode:
                raise SystemExit(f"{' '.join(words[:3])} …: ended with {process.returncode}\n{err.read().decode()}")
            return out.read().decode()

    def model(self, name):
        if name.startswith("shared/"):
            return ROOT.parent / "shared/data/onnx" / f"{name.removeprefix('shared/')}.onnx"
        if name.endswith(".onnx"):
            return pathlib.Path(name)
        path = self.folder(name) / "model.onnx"
        if not path.exists():
            self.run([self.doppler, "generate", name, "--weights", "1", "-o", path, *self.sizes.get(name, [])])
        return path

    def folder(self, name):
        """A directory of the model's own; other sizes are another model."""
        path = self.work / "-".join([name.replace("/", "_"), *self.sizes.get(name, [])]).replace("---", "-")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def theirs(self, name, **flags):
        inputs = self.folder(name) / "inputs"
        inputs.mkdir(exist_ok=True)
        command = ["node", ROOT / "bench/models/onnxruntime.js", self.model(name), "--runtime", self.runtime,
                   "--inputs", inputs]
        for key, value in flags.items():
            command += [f"--{key}", value]
        return json.loads(self.run(command))

    def ours(self, name, machine, *flags):
        command = [self.doppler, "run", self.model(name), *flags, "--machine", machine, "--no-one-device", "--json",
                   "-", "--quiet"]
        for path in sorted((self.folder(name) / "inputs").glob("*.npy")):
            command += ["--input", f"{urllib.parse.unquote(path.stem)}={path}"]
        return json.loads(self.run(command))

    def place(self, name, machine, method, *flags):
        path = self.folder(name) / f"{method}.json"
        self.run([self.doppler, "place", self.model(name), "--machine", machine, "--method", *method.split(),
                  "--quiet", *flags, "-o", path])
        return path

    def compare(self, name, *flags):
        """Returns the largest relative errors on one device and on two with ops dealt at random, and whether two runs
        gave the same bits."""
        truth = self.folder(name) / "theirs"
        truth.mkdir(exist_ok=True)
        outputs = self.theirs(name, outputs=truth)["outputs"]
        errors, bits = {}, {}
        placements = {machine: self.place(name, machine, method, *flags)
                      for machine, method in ((self.one, "single"), (self.two, "random"))}
        for label, machine in (("one", self.one), ("two", self.two), ("again", self.two)):
            results = self.folder(name) / label
            self.ours(name, machine, placements[machine], "--deterministic", "--output", results, "--repeat", "1",
                      "--warmup", "0", *flags)
            errors[label] = max(relative_error(read_npy(results / f"{o}.npy"), read_npy(truth / f"{o}.npy"))
                                for o in outputs)
            bits[label] = [(results / f"{o}.npy").read_bytes() for o in outputs]
        return errors["one"], max(errors["two"], errors["again"]), bits["two"] == bits["again"]

    def truth(self, names):
        print("| model | one device | two devices | twice the same bits |\n|---|---|---|---|")
        for name in names:
            one, two, same = self.compare(name)
            print(f"| {name} | {one:.1e} | {two:.1e} | {'yes' if same else 'no'} |", flush=True)
            if not max(one, two) <= MOST_ERROR or not same:
                sys.exit(f"{name}: found errors {one} and {two}, same bits: {same}; required at most {MOST_ERROR} and "
                         f"the same bits")

    def speed(self, names, turns, repeat):
        print("| model | doppler | ONNX Runtime | ratio | first run | theirs | memory | theirs |\n"
              "|---|---|---|---|---|---|---|---|")
        ratios, firsts, memories = [], [], []
        for name in names:
            ours, theirs, began, first, peaks, their_peaks = [], [], [], [], [], []
            self.theirs(name)  # makes the inputs
            placement = self.place(name, self.one, "single")
            for _ in range(turns):
                answer = self.theirs(name, threads=1, repeat=repeat, warmup=2)
                theirs += answer["times"]
                first.append(answer["created"] + answer["first"])
                their_peaks.append(answer["peak_bytes"])
                ours += self.ours(name, self.one, placement, "--repeat", repeat, "--warmup", 2)["times"]
                peaks.append(self.peak)
                self.ours(name, self.one, placement, "--repeat", 1, "--warmup", 0)
                began.append(self.wall)
            ratios.append(lower_decile(ours) / lower_decile(theirs))
            firsts.append(min(began) / min(first))
            memories.append(min(peaks) / min(their_peaks))
            print(f"| {name} | {lower_decile(ours) * 1e3:.1f} ms | {lower_decile(theirs) * 1e3:.1f} ms | "
                  f"{ratios[-1]:.2f} | {min(began):.2f} s | {min(first):.2f} s | {min(peaks) / 2**20:.0f} MiB | "
                  f"{min(their_peaks) / 2**20:.0f} MiB |", flush=True)
        for what, values in (("times", ratios), ("first runs", firsts), ("memory", memories)):
            print(f"{what}: geometric mean of the ratios {math.exp(sum(map(math.log, values)) / len(values)):.3f}, "
                  f"largest {max(values):.2f}")

    def sharded(self, names, turns, repeat):
        print("| model | one device | two devices | speed-up | difference | twice the same bits |\n"
              "|---|---|---|---|---|---|")
        for name in names:
            results = {label: self.folder(name) / label for label in ("whole", "blocks", "again")}
            check = ("--deterministic", "--repeat", "1", "--warmup", "0", "--output")
            self.ours(name, self.one, *check, results["whole"])
            for label in ("blocks", "again"):
                self.ours(name, self.two, "--shard", "2", *check, results[label])
            files = sorted(path.name for path in results["whole"].glob("*.npy"))
            error = max(relative_error(read_npy(results["blocks"] / f), read_npy(results["whole"] / f)) for f in files)
            same = all((results["blocks"] / f).read_bytes() == (results["again"] / f).read_bytes() for f in files)
            one, two = [], []
            for _ in range(turns):
                one += self.ours(name, self.one, "--repeat", repeat, "--warmup", 2)["times"]
                two += self.ours(name, self.two, "--shard", 2, "--repeat", repeat, "--warmup", 2)["times"]
            print(f"| {name} | {lower_decile(one) * 1e3:.1f} ms | {lower_decile(two) * 1e3:.1f} ms | "
                  f"{lower_decile(one) / lower_decile(two):.2f} | {error:.1e} | {'yes' if same else 'no'} |", flush=True)
            if not error <= MOST_ERROR or not same:
                sys.exit(f"{name}: found a difference of {error}, same bits: {same}; required at most {MOST_ERROR} and "
                         f"the same bits")

    def placement(self, turns, repeat):
        name, machine = "inception-v3", self.work / "box.json"
        self.theirs(name)
        self.run([self.doppler, "calibrate", self.model(name), "--count", "2", "--quiet", "-o", machine])
        methods = ["single", "heft", "anneal --time 10s", "doppler", "doppler --train 20s"]
        placements = {method: self.place(name, machine, method) for method in methods}
        times, predicted = {}, {}
        for _ in range(turns):
            for method in methods:
                answer = self.ours(name, machine, placements[method], "--repeat", repeat, "--warmup", 2)
                times.setdefault(method, []).extend(answer["times"])
                predicted[method] = answer["predicted"]
        print("| method | measured | predicted | speed-up |\n|---|---|---|---|")
        for method in methods:
            print(f"| {method} | {lower_decile(times[method]) * 1e3:.1f} ms | {predicted[method] * 1e3:.1f} ms "
                  f"| {lower_decile(times['single']) / lower_decile(times[method]):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["truth", "speed", "placement", "sharded"])
    parser.add_argument("--models", help="names, with commas between them; default: the zoo")
    parser.add_argument("--doppler", default=ROOT / "build/release/bin/doppler", type=pathlib.Path)
    parser.add_argument("--work", default=ROOT / "build/models", help="where models, inputs and results go")
    parser.add_argument("--batch", type=int, default=1, help="pictures or texts at once")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=8)
    options = parser.parse_args()
    sizes = dict(SMALL)
    if options.batch > 1:
        sizes = {name: [*sizes.get(name, []), "--batch", str(options.batch)] for name in ZOO + list(SMALL)}
    bench = Bench(options.doppler, options.work, sizes, runtime="none" if options.what == "sharded" else None)
    shared = [f"shared/{path.stem}" for path in sorted((ROOT.parent / "shared/data/onnx").glob("*.onnx"))]
    names = options.models.split(",") if options.models else None
    if options.what == "truth":
        bench.truth(names or ZOO + list(SMALL) + shared)
    elif options.what == "speed":
        bench.speed(names or ZOO, options.turns, options.repeat)
    elif options.what == "sharded":
        bench.sharded(names or ["resnet50", "inception-v3", "bert-base"], options.turns, options.repeat)
    else:
        bench.placement(options.turns, options.repeat)


if __name__ == "__main__":
    main()
