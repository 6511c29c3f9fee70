#!/usr/bin/env python3
"""run, calibrate and validate as a user calls them: DOPPLER=path engine_cli_test.py."""
import array
import json
import os
import pathlib
import subprocess
import unittest

from command import DOPPLER, CommandCase

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "blocks.json"


def relative_error(ours, theirs):
    """The largest difference of two .npy files of f32 over the largest magnitude."""
    def values(data):
        return array.array("f", data[10 + int.from_bytes(data[8:10], "little"):])
    a, b = values(ours), values(theirs)
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) / max(map(abs, b))


class EngineTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.graph, self.placement = self.directory / "g.json", self.directory / "p.json"
        self.ok("generate", "ffnn", "--batch", 64, "--input", 16, "--hidden", 128, "--output-width", 16, "--parts", 4,
                "-o", self.graph)
        self.ok("place", self.graph, "--machine", "cpu2", "--method", "heft", "-o", self.placement)

    def test_runs_a_placement_and_says_how_long_it_took(self):
        done = self.ok("run", self.graph, self.placement, "--machine", "cpu2", "--repeat", 5, "--json", self.directory / "r.json",
                       "--trace", self.directory / "t.json")
        for word in ("measured", "predicted", "one device", "speed-up", "busy", "channel"):
            self.assertIn(word, done.stdout)
        result = json.loads((self.directory / "r.json").read_text())
        self.assertEqual(len(result["times"]), 5)
        self.assertGreater(result["measured"], 0)
        for device in result["device_times"]:
            self.assertGreaterEqual(device["busy"], 0)
        self.assertTrue(json.loads((self.directory / "t.json").read_text())["traceEvents"])

    def test_one_device_is_not_timed_if_nobody_wants_to_know(self):
        done = self.ok("run", self.graph, self.placement, "--machine", "cpu2", "--repeat", 2, "--no-one-device")
        self.assertIn("measured", done.stdout)
        self.assertNotIn("one device", done.stdout)

    def test_computes_the_same_results_on_one_device_and_on_two(self):
        one = self.directory / "one.json"
        self.ok("place", self.graph, "--machine", "cpu2", "--method", "single", "-o", one)
        for name, placement in (("a", one), ("b", self.placement)):
            self.ok("run", self.graph, placement, "--machine", "cpu2", "--repeat", 1, "--deterministic", "--output",
                    self.directory / name)
        files = sorted(path.name for path in (self.directory / "a").iterdir())
        self.assertTrue(files)
        for file in files:
            self.assertEqual((self.directory / "a" / file).read_bytes(), (self.directory / "b" / file).read_bytes())

    def test_runs_any_graph_on_emulated_devices(self):
        done = self.ok("run", self.graph, self.placement, "--machine", "cpu2", "--devices", "emulated", "--repeat", 2,
                       "--warmup", 0)
        self.assertIn("emulated", done.stdout)

    def test_takes_the_preset_that_the_placement_was_made_for(self):
        result = json.loads(self.ok("run", self.graph, self.placement, "--repeat", 1, "--json").stdout)
        self.assertEqual(result["machine"], "cpu2")
        file = json.loads(self.placement.read_text())
        file["machine"] = "somewhere"
        self.placement.write_text(json.dumps(file))
        self.fails("required --machine", "run", self.graph, self.placement)

    def test_says_how_fast_products_are_and_warns_if_they_are_slow(self):
        facts = self.directory / "facts.json"
        done = self.ok("info", self.graph, "--kernels", "--json", facts)
        self.assertRegex(done.stdout, r"products +f32 \d+ of \d+ GFLOP/s \(\d+ % of the peak\), f64 ")
        self.assertNotIn("warning", done.stderr)
        self.assertEqual([product["dtype"] for product in json.loads(facts.read_text())["products"]], ["f32", "f64"])
        # OpenBLAS's loops for a processor of 2004, which a user may ask for.
        slow = subprocess.run([DOPPLER, "info", str(self.graph), "--kernels"], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "OPENBLAS_CORETYPE": "Prescott"})
        self.assertEqual(slow.returncode, 0, slow.stderr)
        self.assertRegex(slow.stderr, r"warning: products of f64 reach \d+ % of this core's peak; required half of it")
        self.assertNotIn("f32", slow.stderr)

    def test_calibrates_and_predicts(self):
        box = self.directory / "box.json"
        speeds = self.directory / "c.json"
        done = self.ok("calibrate", self.graph, "--count", 2, "--placements", 3, "-o", box, "--json", speeds)
        self.assertIn("matmul", done.stdout)
        self.assertRegex(done.stdout, r"products: f32 \d+ of \d+ GFLOP/s \(\d+ % of the peak\), f64 \d+ of ")
        for product in json.loads(speeds.read_text())["products"]:
            self.assertAlmostEqual(product["share_of_peak"],
                                   product["flops_per_second"] / product["peak_flops_per_second"], places=6)
        machine = json.loads(box.read_text())
        self.assertTrue(machine["devices"][0]["measured"])
        self.assertGreater(machine["links"]["default"]["latency"] + machine["links"]["default"]["bytes_per_second"], 0)
        plot, rows = self.directory / "s.svg", self.directory / "v.json"
        self.ok("validate", self.graph, "--machine", box, "--placements", 12, "--repeat", 3, "--plot", plot, "--json", rows)
        self.assertIn("<svg", plot.read_text())
        result = json.loads(rows.read_text())["results"][0]
        self.assertEqual(len(result["samples"]), 12)
        for sample in result["samples"]:
            self.assertGreater(sample["simulated"], 0)
            self.assertGreater(sample["measured"], 0)
            self.assertEqual(len(sample["times"]), 3)
        self.assertTrue(0 <= result["repeatability"] <= 1, result["repeatability"])
        self.assertGreater(machine["jitter"]["sigma"], 0)
        self.assertRegex(done.stdout, r"times vary by [\d.]+ % within a run")
        self.assertRegex(done.stdout, r"fit: of \d+ ops, 5 % take at most [\d.]+ \([\d.]+\), 50 % take at most ")
        self.assertIn("(Kolmogorov-Smirnov)", done.stdout)
        self.assertGreater(json.loads(speeds.read_text())["fit"]["samples"], 100)
        placed = self.ok("place", self.graph, "--machine", box, "--method", "heft", "-o", self.placement)
        self.assertIn("expected", placed.stdout)
        simulated = json.loads(self.ok("simulate", self.graph, self.placement, "--machine", box, "--json").stdout)
        measured = json.loads(self.ok("run", self.graph, self.placement, "--machine", box, "--repeat", 1, "--json").stdout)
        self.assertEqual(simulated["expected"], measured["predicted"])
        self.ok("simulate", self.graph, self.placement, "--machine", box, "--links", "free", "--ties", "published")
        compared = self.directory / "compared.json"
        self.assertIn("expected", self.ok("compare", self.graph, "--machine", box, "--methods", "heft,single", "--json", compared).stdout)
        for row in json.loads(compared.read_text())["results"]:
            self.assertGreater(row["expected"], 0)

    def test_warns_where_times_vary_so_much_that_no_prediction_means_anything(self):
        box = self.directory / "box.json"
        calibrate = ("calibrate", EXAMPLE, "--machine", "p100x4", "--devices", "emulated", "--placements", 2, "--repeat", 2,
                     "-o", box)
        done = self.ok(*calibrate, "--jitter", 2)
        self.assertRegex(done.stderr, r"warning: this machine predicts little: equal ops differ by \d+ % within a run; required at most 50 %")
        # What the emulated devices varied by, and what of the times is the emulation's own, is in the file.
        machine = json.loads(box.read_text())
        self.assertEqual(machine["emulation"]["jitter"], 2)
        self.assertLessEqual(machine["emulation"]["latency"], machine["links"]["default"]["latency"])

    def test_runs_a_model_in_blocks(self):
        model, cut, whole = self.directory / "m.onnx", self.directory / "cut", self.directory / "whole"
        self.ok("generate", "bert-base", "--layers", 1, "--width", 64, "--heads", 4, "--hidden", 128, "--vocabulary", 50,
                "--sequence", 32, "--weights", 1, "-o", model)
        once = ("--repeat", 1, "--warmup", 0, "--no-one-device", "--quiet")
        self.ok("run", model, "-m", "cpu2", *once, "--output", whole)
        for shard in (2, 4, 1000, "auto"):
            self.ok("run", model, "-m", "cpu2", "--shard", shard, *once, "--output", cut)
            for path in whole.iterdir():
                self.assertLessEqual(relative_error((cut / path.name).read_bytes(), path.read_bytes()), 1e-4)
        # A placement is of one cut, and devices with memories of their own do not run blocks.
        self.ok("place", model, "-m", "cpu2", "--shard", 2, "--method", "heft", "-o", self.placement)
        self.ok("run", model, self.placement, "-m", "cpu2", "--shard", 2, *once)
        self.fails("required one of", "run", model, self.placement, "-m", "cpu2", *once)
        self.fails("shared links", "run", model, "-m", "p100x4", "--shard", 2, *once)
        self.fails("between 1 and 4096", "run", model, "-m", "cpu2", "--shard", 5000, *once)

    def test_one_run_of_each_says_nothing_about_repeatability(self):
        rows = self.directory / "v.json"
        done = self.ok("validate", self.graph, "--calibrate", "--placements", 4, "--repeat", 1, "--json", rows)
        self.assertNotIn("repeatability", json.loads(rows.read_text())["results"][0])
        self.assertRegex(done.stdout, r"  -  ")

    def test_the_machine_says_how_tensors_move_unless_the_user_does(self):
        box = self.directory / "box.json"
        self.ok("calibrate", self.graph, "--count", 2, "--placements", 2, "--repeat", 1, "--links", "receiver", "-o", box)
        self.assertEqual(json.loads(box.read_text())["links"]["model"], "receiver")
        self.ok("place", self.graph, "--machine", box, "--method", "random", "-o", self.placement)
        self.assertEqual(json.loads(self.placement.read_text())["links"], "receiver")
        result = json.loads(self.ok("run", self.graph, self.placement, "--machine", box, "--repeat", 1, "--json").stdout)
        self.assertGreater(sum(device["copying"] for device in result["device_times"]), 0)
        self.ok("place", self.graph, "--machine", box, "--links", "free", "--method", "heft", "-o", self.placement)
        self.assertEqual(json.loads(self.placement.read_text())["links"], "free")

    def test_validates_with_a_calibration_of_the_same_minute(self):
        rows = self.directory / "v.json"
        self.ok("validate", self.graph, "--calibrate", "--placements", 6, "--repeat", 2, "--json", rows)
        self.assertEqual(len(json.loads(rows.read_text())["results"][0]["samples"]), 6)
        self.ok("validate", self.graph, "--machine", "p100x4", "--devices", "emulated", "--calibrate", "--placements", 6,
                "--repeat", 2)

    def test_says_what_cuda_devices_need_where_there_are_none(self):
        if (pathlib.Path(DOPPLER).parent / "doppler_cuda.so").exists():
            self.skipTest("this build has CUDA devices")
        for arguments in (
            ["run", self.graph, self.placement, "--machine", "cpu2"],
            ["calibrate", self.graph, "--count", 2],
            ["validate", self.graph, "--machine", "cpu2"],
            ["train", self.graph, "--machine", "cpu2", "--stages", "system", "--out", self.directory / "run"],
        ):
            self.fails("required a build configured with -DDOPPLER_CUDA=ON and a libtorch with CUDA",
                       *arguments, "--devices", "cuda")

    def test_refuses_what_it_cannot_run_in_one_line(self):
        bare = self.directory / "bare.json"
        file = json.loads(self.graph.read_text())
        del file["program"]
        bare.write_text(json.dumps(file))
        timed = self.directory / "timed.json"
        self.ok("generate", "chainmm", "--size", 64, "--parts", 4, "--costs", "seconds", "-o", timed)
        for arguments, text in (
            (["run", bare, self.placement, "--machine", "cpu2"], "a graph from 'doppler generate' or 'doppler lower'"),
            (["run", self.graph, self.placement, "--machine", "cpu2", "--input", "nothing=x.npy"], "--input"),
            (["run", self.graph, self.placement, "--machine", "cpu2", "--slowdown", "cpu0=2"], "--devices emulated"),
            (["run", self.graph, self.placement, "--machine", "cpu2", "--devices", "gpu"], "--devices"),
            (["run", self.graph, self.placement, "--machine", "cpu2", "--repeat", "0"], "--repeat"),
            (["calibrate", "--devices", "cuda"], "required --count or --machine"),
            (["calibrate", bare], "a graph from 'doppler generate' or 'doppler lower'"),
            (["calibrate", "--devices", "emulated"], "--machine"),
            (["validate", self.graph, "--machine", "cpu2", "--placements", "1"], "--placements"),
            (["validate", self.graph], "--calibrate"),
            (["calibrate", timed, "--count", 2], "explicit times"),
            (["validate", timed, "--calibrate"], "explicit times"),
            (["place", self.graph, "--machine", "cpu2", "--links", "pigeons"], "required one of free, channels, receiver, shared"),
        ):
            self.fails(text, *arguments)


if __name__ == "__main__":
    unittest.main()
