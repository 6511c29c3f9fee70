"""Learning on the real system: `doppler run --learn` and `doppler train --stages …,system`, by the real command, on
emulated devices. Usage: DOPPLER=path/to/doppler learn_cli_test.py"""
import json
import pathlib
import signal
import subprocess
import time
import unittest
import xml.dom.minidom

from command import DOPPLER, LIMIT, CommandCase, run

INTERRUPTED, INFEASIBLE = 130, 3
# An op takes about 0.1 ms on the modelled devices; ten times that is well above what a busy box adds to a sleep.
SCALE = 10
PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "examples/attention.ein"
BURST, ALLOWED_SHARE = 16, 0.1


class LearnTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.graph, self.placement = self.directory / "graph.json", self.directory / "placement.json"
        self.ok("generate", "layered", "--ops", 40, "--width", 8, "--seed", 1, "-o", self.graph)
        self.ok("place", self.graph, "--machine", "p100x4", "--method", "anneal", "--evaluations", 20000, "-o",
                self.placement)

    def serve(self, *flags):
        return ("run", self.graph, self.placement, "--machine", "p100x4", "--devices", "emulated", "--time-scale", SCALE,
                "--learn", "--search-time", "50ms", *flags)

    def lines(self, path):
        return [json.loads(line) for line in path.read_text().splitlines()]

    def test_adapts_to_a_device_that_becomes_slow(self):
        log, plot, end = (self.directory / name for name in ("log.jsonl", "plot.svg", "end.json"))
        result = json.loads(self.ok(*self.serve("--runs", 140, "--drift", "0=3@50", "--log", log, "--plot", plot, "-o",
                                                end, "--json")).stdout)
        self.assertEqual(result["runs"], 140)
        drift = result["drifts"][0]
        self.assertGreater(drift["right_after"], drift["before"])
        events = [line for line in self.lines(log) if "event" in line]
        noticed = [line for line in events if line["event"] == "drift"]
        self.assertTrue(any(line["run"] >= 50 for line in noticed), events)
        changed = [line for line in events if line["event"] == "changed" and line["run"] > 50]
        self.assertTrue(changed, events)
        for line in changed:
            self.assertLess(line["p"], 0.01)
        self.assertLess(result["at_the_end"], drift["right_after"])
        self.assertLessEqual(result["explored"], ALLOWED_SHARE * 140 + 1 + BURST * len(noticed))
        self.assertEqual(len([line for line in self.lines(log) if "seconds" in line]), 140)
        # What it ends with moves work off the slow device, and can be run.
        before, after = (json.loads(path.read_text())["assignment"] for path in (self.placement, end))
        self.assertLess(after.count(0), before.count(0))
        picture = xml.dom.minidom.parse(str(plot))
        self.assertEqual(len(picture.getElementsByTagName("circle")), 140)

    def test_prints_a_summary(self):
        text = self.ok(*self.serve("--runs", 12)).stdout
        for word in ("runs         12", "at first", "at the end", "changes"):
            self.assertIn(word, text)

    def test_ctrl_c_keeps_what_was_learned(self):
        log, end = self.directory / "log.jsonl", self.directory / "end.json"
        command = self.serve("--runs", 1000000, "--log", log, "-o", end)
        process = subprocess.Popen([DOPPLER, *map(str, command)], stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + LIMIT
        while not (log.exists() and log.read_text().count("\n") > 5) and time.monotonic() < deadline:
            pass
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertIn("at the end", text)
        self.ok("simulate", self.graph, end, "--machine", "p100x4")

    def test_goes_on_without_a_device_that_is_gone_and_uses_it_again(self):
        log, end = self.directory / "log.jsonl", self.directory / "end.json"
        result = json.loads(self.ok(*self.serve("--runs", 120, "--drift", "gpu2=gone@30", "--drift", "gpu2=back@60",
                                                "--log", log, "-o", end, "--json")).stdout)
        self.assertEqual(result["runs"], 120)
        self.assertEqual(len(result["times"]), 120)
        self.assertEqual(result["lost"], 1)
        events = {line["event"]: line["run"] for line in self.lines(log) if "event" in line}
        self.assertEqual(events["gone"], 30)
        self.assertGreaterEqual(events["back"], 60)
        self.assertLessEqual(events["back"], 65)  # it is asked after every five runs
        self.assertEqual([drift["change"] for drift in result["drifts"]], ["gone", "back"])

    def test_ends_with_what_it_has_if_no_device_is_left(self):
        end = self.directory / "end.json"
        gone = [word for device in range(4) for word in ("--drift", f"gpu{device}=gone@5")]
        done = run(*self.serve("--runs", 20, *gone, "-o", end))
        self.assertEqual(done.returncode, INFEASIBLE, done.stderr)
        self.assertIn("no device that is left can run op", done.stderr)
        self.assertIn("runs         5", done.stdout)
        self.ok("simulate", self.graph, end, "--machine", "p100x4")

    def test_a_killed_service_goes_on_from_its_state(self):
        log, state = self.directory / "log.jsonl", self.directory / "service.state"
        drift = ("--drift", "0=3@8")  # so that there is something to challenge
        command = self.serve("--runs", 100000, *drift, "--log", log, "--state", state)
        process = subprocess.Popen([DOPPLER, *map(str, command)], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + LIMIT
        while not (state.exists() and "challenge" in state.read_text()):
            self.assertLess(time.monotonic(), deadline)
        process.kill()
        process.wait()
        kept = json.loads(state.read_text())["state"]
        self.assertGreater(kept["runs"], 0)
        lines = log.read_bytes()[:kept["log_bytes"]]
        runs = kept["runs"] + 10
        again = self.serve("--runs", runs, *drift, "--log", log, "--state", state, "--json")
        result = json.loads(self.ok(*again).stdout)
        self.assertEqual(result["runs"], runs)
        self.assertEqual(result["resumed_at"], kept["runs"])
        self.assertEqual(len(result["times"]), 10)
        self.assertEqual(log.read_bytes()[:len(lines)], lines)
        # Every run has its line once, those before the kill too.
        self.assertEqual([line["run"] for line in self.lines(log) if "seconds" in line], list(range(runs)))
        self.assertEqual(json.loads(state.read_text())["state"]["runs"], runs)
        self.fails(f"--runs: found {runs}; required more", *self.serve("--runs", runs, "--state", state))

    def test_refuses_a_state_that_is_damaged_or_of_another_problem(self):
        state = self.directory / "service.state"
        self.ok(*self.serve("--runs", 3, "--state", state))
        whole = state.read_bytes()
        self.fails("state of another problem", *self.serve("--runs", 6, "--state", state, "--discipline", "priority",
                                                            "--quiet"))
        self.assertEqual(state.read_bytes(), whole)
        state.write_bytes(whole[:len(whole) // 2])
        self.fails("found no whole state", *self.serve("--runs", 6, "--state", state))
        state.write_bytes(whole.replace(b'"runs":3', b'"runs":4'))
        self.fails("checksum is wrong", *self.serve("--runs", 6, "--state", state))
        state.write_bytes(whole)
        self.fails("required the log of the state",
                   *self.serve("--runs", 6, "--state", self.copy_with_log(state), "--log", self.directory / "none"))

    def copy_with_log(self, state):
        """A state whose service had a log, which is then lost."""
        state.unlink()
        log = self.directory / "lost.jsonl"
        self.ok(*self.serve("--runs", 3, "--state", state, "--log", log))
        log.unlink()
        return state

    def test_refuses_wrong_flags(self):
        self.fails("--drift: found 'gpu0-gpu1=gone@3'", *self.serve("--drift", "gpu0-gpu1=gone@3"))
        self.fails("--drift: found 'gpu0-gpu7'", *self.serve("--drift", "gpu0-gpu7=2@3"))
        self.fails("--drift: found '0=2'", *self.serve("--drift", "0=2"))
        self.fails("--drift: found '0=x@3'", *self.serve("--drift", "0=x@3"))
        self.fails("device", *self.serve("--drift", "nowhere=2@3"))
        self.fails("--learn", "run", self.graph, self.placement, "--machine", "p100x4", "--devices", "emulated",
                   "--plot", "x.svg")

    def train(self, out, *flags, stages="simulation,system", runs=60):
        return ("train", self.graph, "--machine", "p100x4", "--episodes", 320, "--seed", 3, "--stages", stages,
                "--devices", "emulated", "--time-scale", SCALE, "--runs", runs, "--out", out, *flags)

    def test_trains_on_the_system_when_the_time_of_the_simulator_is_up(self):
        text = self.ok("train", self.graph, "--machine", "p100x4", "--stages", "simulation,system", "--time", "0.5s",
                       "--devices", "emulated", "--runs", 60, "--out", self.directory / "run").stdout
        self.assertIn("after stage II", text)
        self.assertTrue(self.lines(self.directory / "run" / "measurements.jsonl"))

    def test_trains_on_the_system_after_the_simulator(self):
        out = self.directory / "run"
        text = self.ok(*self.train(out)).stdout
        self.assertIn("after stage II", text)
        metrics = self.lines(out / "metrics.jsonl")
        self.assertEqual([line["stage"] for line in metrics][-1], "system")
        self.assertIn("simulation", [line["stage"] for line in metrics])
        runs = self.lines(out / "measurements.jsonl")
        self.assertEqual(len(runs), metrics[-1]["runs"])
        self.assertLessEqual(len(runs), 60)
        self.ok("simulate", self.graph, out / "placements/graph@p100x4.json", "--machine", "p100x4")
        # It is over: resuming runs nothing more.
        self.ok(*self.train(out, "--resume"))
        self.assertEqual(self.lines(out / "measurements.jsonl"), runs)

    def test_trains_another_policy_on_unequal_emulated_devices(self):
        out = self.directory / "unequal"
        text = self.ok("train", PROGRAM, "--machine", "cpu+igpu+gpu", "--policy", "hsdag+", "--episodes", 640, "--seed", 3,
                       "--stages", "simulation,system", "--devices", "emulated", "--runs", 60, "--out", out).stdout
        self.assertIn("after stage II", text)
        self.assertEqual(self.lines(out / "metrics.jsonl")[-1]["stage"], "system")
        placement = out / "placements/attention@cpu+igpu+gpu.json"
        self.assertEqual(json.loads(placement.read_text())["method"], "hsdag+")
        self.ok("simulate", PROGRAM, placement, "--machine", "cpu+igpu+gpu")

    def test_goes_on_with_the_measurements_of_a_killed_training(self):
        out = self.directory / "killed"
        process = subprocess.Popen([DOPPLER, *map(str, self.train(out, "--checkpoint-every", "1ms"))],
                                   stdout=subprocess.DEVNULL)
        measurements = out / "measurements.jsonl"
        deadline = time.monotonic() + LIMIT
        while not (measurements.exists() and measurements.read_text().count("\n") > 3) and time.monotonic() < deadline:
            pass
        process.kill()
        process.wait()
        before = measurements.read_text().splitlines()[:-1]  # the last may be cut short
        self.ok(*self.train(out, "--checkpoint-every", "1ms", "--resume"))
        after = measurements.read_text().splitlines()
        self.assertEqual(after[:len(before)], before)

    def test_refuses_a_system_stage_that_cannot_be(self):
        self.fails("required one graph", "train", self.graph, self.graph, "--machine", "p100x4", "--stages", "system",
                   "--devices", "emulated", "--out", self.directory / "a")
        self.fails("no program", "train", self.graph, "--machine", "cpu2", "--stages", "system", "--out",
                   self.directory / "b")
        self.fails("--runs: found 5", *self.train(self.directory / "c", runs=5))
        self.fails("--stages: found 'system,simulation'", *self.train(self.directory / "d", stages="system,simulation"))


if __name__ == "__main__":
    unittest.main()
