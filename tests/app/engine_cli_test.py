#!/usr/bin/env python3
"""run, calibrate and validate as a user calls them: DOPPLER=path engine_cli_test.py."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

DOPPLER = os.environ["DOPPLER"]


def doppler(*arguments, code=0):
    done = subprocess.run([DOPPLER, *map(str, arguments)], capture_output=True, text=True, timeout=240)
    assert done.returncode == code, f"exit {done.returncode}, required {code}: {arguments}\n{done.stdout}{done.stderr}"
    return done


class Engine(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.at = pathlib.Path(self.directory.name)
        self.graph, self.placement = self.at / "g.json", self.at / "p.json"
        doppler("generate", "ffnn", "--batch", 64, "--input", 16, "--hidden", 128, "--output-width", 16, "--parts", 4,
                "-o", self.graph)
        doppler("place", self.graph, "--machine", "cpu2", "--method", "heft", "-o", self.placement)

    def test_runs_a_placement_and_says_how_long_it_took(self):
        done = doppler("run", self.graph, self.placement, "--machine", "cpu2", "--repeat", 5, "--json", self.at / "r.json",
                       "--trace", self.at / "t.json")
        for word in ("measured", "predicted", "one device", "speed-up", "busy", "channel"):
            self.assertIn(word, done.stdout)
        result = json.loads((self.at / "r.json").read_text())
        self.assertEqual(len(result["times"]), 5)
        self.assertGreater(result["measured"], 0)
        for device in result["device_times"]:
            self.assertGreaterEqual(device["busy"], 0)
        self.assertTrue(json.loads((self.at / "t.json").read_text())["traceEvents"])

    def test_computes_the_same_results_on_one_device_and_on_two(self):
        one = self.at / "one.json"
        doppler("place", self.graph, "--machine", "cpu2", "--method", "single", "-o", one)
        for name, placement in (("a", one), ("b", self.placement)):
            doppler("run", self.graph, placement, "--machine", "cpu2", "--repeat", 1, "--deterministic", "--output",
                    self.at / name)
        files = sorted(path.name for path in (self.at / "a").iterdir())
        self.assertTrue(files)
        for file in files:
            self.assertEqual((self.at / "a" / file).read_bytes(), (self.at / "b" / file).read_bytes())

    def test_runs_any_graph_on_emulated_devices(self):
        done = doppler("run", self.graph, self.placement, "--machine", "cpu2", "--devices", "emulated", "--repeat", 2,
                       "--warmup", 0)
        self.assertIn("emulated", done.stdout)

    def test_calibrates_and_predicts(self):
        box = self.at / "box.json"
        done = doppler("calibrate", self.graph, "--count", 2, "--placements", 3, "-o", box)
        self.assertIn("matmul", done.stdout)
        machine = json.loads(box.read_text())
        self.assertTrue(machine["devices"][0]["measured"])
        self.assertGreater(machine["links"]["default"]["latency"] + machine["links"]["default"]["bytes_per_second"], 0)
        plot, rows = self.at / "s.svg", self.at / "v.json"
        doppler("validate", self.graph, "--machine", box, "--placements", 12, "--repeat", 3, "--plot", plot, "--json", rows)
        self.assertIn("<svg", plot.read_text())
        result = json.loads(rows.read_text())["results"][0]
        self.assertEqual(len(result["samples"]), 12)
        for sample in result["samples"]:
            self.assertGreater(sample["simulated"], 0)
            self.assertGreater(sample["measured"], 0)

    def test_refuses_what_it_cannot_run_in_one_line(self):
        bare = self.at / "bare.json"
        file = json.loads(self.graph.read_text())
        del file["program"]
        bare.write_text(json.dumps(file))
        for arguments, text in (
            (["run", bare, self.placement, "--machine", "cpu2"], "required a graph from 'doppler generate'"),
            (["run", self.graph, self.placement, "--machine", "cpu2", "--input", "nothing=x.npy"], "--input"),
            (["run", self.graph, self.placement, "--machine", "cpu2", "--slowdown", "cpu0=2"], "--devices emulated"),
            (["run", self.graph, self.placement, "--machine", "cpu2", "--devices", "gpu"], "--devices"),
            (["run", self.graph, self.placement, "--machine", "cpu2", "--repeat", "0"], "--repeat"),
            (["calibrate", bare], "required a graph from 'doppler generate'"),
            (["calibrate", "--devices", "emulated"], "--machine"),
            (["validate", self.graph, "--machine", "cpu2", "--placements", "1"], "--placements"),
        ):
            done = doppler(*arguments, code=2)
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
