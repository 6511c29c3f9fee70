"""`doppler train` and the learned method, by the real command. Usage: DOPPLER=path/to/doppler train_cli_test.py"""
import json
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from command import DOPPLER, LIMIT, CommandCase, run

EXAMPLE = str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "blocks.json")


class TrainTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.graph = self.directory / "graph.json"
        self.ok("generate", "layered", "--ops", 40, "--width", 5, "--seed", 1, "-o", self.graph)

    def train(self, name, *flags, episodes=320):
        out = self.directory / name
        self.ok("train", self.graph, "--machine", "p100x4", "--episodes", episodes, "--seed", 3, "--out", out, *flags)
        return out

    def metrics(self, out):
        return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]

    def test_writes_policy_checkpoint_metrics_and_placements(self):
        out = self.train("run", "--objective", "exact")  # There is a bound on exact times alone.
        for name in ("policy", "checkpoint", "metrics.jsonl", "placements/graph@p100x4.json"):
            self.assertTrue((out / name).exists(), name)
        stages = [line["stage"] for line in self.metrics(out)]
        self.assertEqual(sorted(set(stages)), ["imitation", "simulation"])
        last = self.metrics(out)[-1]
        for key in ("update", "episodes", "seconds", "mean", "best", "lower_bound", "gap", "entropy"):
            self.assertIn(key, last)
        first = self.metrics(out)[0]
        for key in ("log_probability", "sel_agreement", "plc_agreement"):
            self.assertIn(key, first)
            self.assertNotIn(key, last)
        # The placement is worth what it says.
        placement = out / "placements/graph@p100x4.json"
        simulated = json.loads(self.ok("simulate", self.graph, placement, "--machine", "p100x4", "--json").stdout)
        self.assertEqual(simulated["makespan"], json.loads(placement.read_text())["makespan"])

    def test_the_same_seed_gives_the_same_bytes(self):
        self.assertEqual((self.train("a") / "policy").read_bytes(), (self.train("b") / "policy").read_bytes())

    def test_kill_and_resume_end_where_an_undisturbed_training_ends(self):
        whole = self.train("whole", episodes=4800)
        out = self.directory / "killed"
        command = [DOPPLER, "train", self.graph, "--machine", "p100x4", "--episodes", "4800", "--seed", "3", "--out", out,
                   "--checkpoint-every", "50ms"]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + LIMIT
        while not (out / "checkpoint").exists():
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll(), "finished before it could be killed")
        process.send_signal(signal.SIGKILL)
        process.wait()
        resumed = self.ok(*command[1:], "--resume")
        self.assertIn("4800 episodes", resumed.stdout)
        self.assertEqual((out / "policy").read_bytes(), (whole / "policy").read_bytes())
        updates = [line["update"] for line in self.metrics(out)]
        self.assertEqual(updates, [*range(0, 300, 10), 299])  # every tenth, and the last

    def test_ctrl_c_and_resume_end_where_an_undisturbed_training_ends(self):
        command = ("train", self.graph, "--machine", "p100x4", "--episodes", 1600, "--seed", 3, "--generated", 2,
                   "--held-out", f"{self.graph}@v100x4", "--held-out-every", 10, "--out")
        whole, out = self.directory / "whole", self.directory / "interrupted"
        self.ok(*command, whole)
        for number in range(1, 4):  # Anywhere: in an episode, in a search, in a score of held-out graphs.
            process = subprocess.Popen([DOPPLER, *map(str, command), str(out), *["--resume"] * out.exists()],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.kill)
            metrics = out / "metrics.jsonl"
            while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") >= 4 * number):
                pass
            process.send_signal(signal.SIGINT)
            self.assertIn(process.wait(LIMIT), (0, 130))
        self.ok(*command, out, "--resume")
        self.assertEqual((out / "policy").read_bytes(), (whole / "policy").read_bytes())
        timeless = lambda lines: [{key: line[key] for key in line if key != "seconds"} for line in lines]
        self.assertEqual(timeless(self.metrics(out)), timeless(self.metrics(whole)))

    def test_ctrl_c_keeps_what_there_is(self):
        out = self.directory / "run"
        process = subprocess.Popen([DOPPLER, "train", self.graph, "--machine", "p100x4", "--time", "600s", "--out", str(out)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not (out / "metrics.jsonl").exists() or not (out / "metrics.jsonl").read_text():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)
        self.assertIn("--resume", stderr)
        self.assertIn("episodes in", stdout)
        self.ok("place", self.graph, "--machine", "p100x4", "--method", "doppler", "--checkpoint", out)

    def test_several_graphs_on_several_machines_with_generated_ones_and_held_out_ones(self):
        out = self.directory / "run"
        done = self.ok("train", f"{self.graph}@p100x8", f"{self.graph}@p100x4", "--weights", "1,2", "--generated", 2,
                       "--held-out", f"{self.graph}@v100x4", "--held-out-every", 5, "--episodes", 320, "--out", out)
        self.assertIn("graph@p100x8", done.stdout)
        self.assertIn("held out", done.stdout)
        lines = [line for line in self.metrics(out) if "held_out" in line]
        self.assertEqual([line["update"] for line in lines], [4, 9, 14, 19])  # every 5 of 20 updates; the end is one
        scores = [line["held_out"] for line in lines]
        self.assertIn(f"held-out score {min(scores):.4f}", (out / "policy").read_bytes()[:2000].decode(errors="replace"))

    def test_the_policy_is_named_in_the_checkpoint(self):
        out = self.train("run", "--policy", "doppler")
        header = json.loads((out / "checkpoint").read_bytes().split(b"\n")[1])
        self.assertEqual(header["policy"], "doppler")
        self.assertEqual(json.loads((out / "placements/graph@p100x4.json").read_text())["method"], "doppler")

    def test_a_placement_names_who_found_it(self):
        # By itself the policy finds everything; classical methods begin where search may help.
        for flags, finders in ((("--search", 0), ["hsdag+"]), ((), ["hsdag+", "expert iteration", "heft", "etf", "cpop",
                                                                    "critical_path", "metis", "single"])):
            out = self.train(f"run{len(flags)}", "--policy", "hsdag+", "--stages", "simulation", *flags)
            made = json.loads((out / "placements/graph@p100x4.json").read_text())
            self.assertEqual(made["method"], "hsdag+")
            self.assertIn(made["winner"], finders)
            last = self.metrics(out)[-1]
            self.assertLessEqual(last["best"], last["batch_best"])
            self.assertLessEqual(last["batch_best"], last["mean"])

    def test_one_joint_policy_is_an_architecture_of_doppler(self):
        out = self.train("run", "--architecture", "joint")
        self.assertIn("joint_agreement", self.metrics(out)[0])
        self.ok("place", self.graph, "--machine", "p100x4", "--method", "doppler", "--checkpoint", out, "--alone")
        self.fails("architecture 'joint width 32 layers 2 ready 16'; required 'gnn", "train", self.graph, "--machine",
                   "p100x4", "--episodes", 320, "--seed", 3, "--out", out, "--resume")

    def test_time_may_be_that_of_the_processor(self):
        out = self.directory / "run"
        self.ok("train", self.graph, "--machine", "p100x4", "--time", "0.3s", "--cpu-time", "--out", out)
        self.assertGreaterEqual(self.metrics(out)[-1]["seconds"], 0.2)

    def test_searches_may_be_timed_by_the_processor(self):
        result = json.loads(self.ok("place", self.graph, "--machine", "p100x4", "--method", "anneal", "--objective", "exact",
                                    "--time", "0.2s", "--cpu-time", "--threads", 1, "--json", "-q").stdout)
        self.assertEqual(result["budget"], "0.2s of the processor")
        self.assertGreater(result["evaluations"], 1)

    def test_a_training_in_which_nothing_fits_says_so_and_keeps_its_policy(self):
        heavy, tiny = self.directory / "heavy.json", self.directory / "tiny.json"
        heavy.write_text(json.dumps({"format": "doppler-graph", "version": 1, "ops": [
            {"name": name, "kind": "matmul", "flops": 1e9, "parameter_bytes": 1 << 20} for name in ("a", "b")]}))
        tiny.write_text(json.dumps({"format": "doppler-machine", "version": 1, "devices": [
            {"name": "gpu", "count": 2, "type": "gpu", "memory": 1000, "rates": [{"flops_per_second": 1e12}]}]}))
        out = self.directory / "run"
        self.fails("train: found no placement that fits in memory, of 1 graphs", "train", heavy, "--machine", tiny,
                   "--episodes", 32, "--out", out, "-q", code=3)
        self.assertTrue((out / "policy").exists())

    def test_ablations_are_part_of_what_is_resumed(self):
        out = self.train("run", "--without", "coparents,plc")
        again = ("train", self.graph, "--machine", "p100x4", "--episodes", 320, "--seed", 3, "--out", out, "--resume")
        self.fails("trained with 'without coparents plc'; required 'without', as asked for", *again)
        self.ok(*again, "--without", "coparents,plc")

    def test_a_policy_can_be_trained_further(self):
        first = self.train("first")
        self.train("second", "--start", first, "--stages", "simulation")

    def test_bad_requests_are_refused(self):
        graph, out = self.graph, self.directory / "run"
        base = ("train", graph, "--machine", "p100x4", "--out", out, "--episodes", 16)
        self.fails("no machine; required --machine", "train", graph, "--out", out)
        self.fails("no graphs", "train", "--out", out, "--machine", "p100x4")
        self.fails("required imitation, simulation or system", *base, "--stages", "guessing")
        self.fails("required imitation, simulation, or", *base, "--stages", "simulation,imitation")
        self.fails("required critical_path, heft or best", *base, "--teacher", "nobody")
        self.fails("required one per graph", *base, "--weights", "1,2")
        self.fails("required positive numbers", *base, "--weights", "0")
        self.fails("found no checkpoint", *base, "--resume")
        self.fails("multiple of 32", *base, "--width", 33)
        self.fails("required 0 to 1", *base, "--rate", "nan")
        self.fails("required at least 1", "train", graph, "--machine", "p100x4", "--out", out, "--episodes", 0)
        self.fails("required more than nothing", "train", graph, "--machine", "p100x4", "--out", out, "--time", "0s")
        self.fails("required graphs of different names", "train", graph, graph, "--machine", "p100x4", "--out", out)
        self.fails("required one of doppler", "place", graph, "--machine", "p100x4", "--train", "1s")
        self.fails("found no method that learns", "compare", graph, "--machine", "p100x4", "--methods", "heft", "--train", "1s")
        self.fails("required --architecture gnn", *base, "--architecture", "paper", "--message-passing", "step")
        self.fails("--policy: found 'nobody'; required one of doppler", *base, "--policy", "nobody")
        self.fails("required of doppler 'gnn width 32 layers 2 messages episode' one of coparents, siblings, sel, plc",
                   *base, "--without", "sel,everything")
        self.fails("--start", *base, "--start", self.train("first"), "--width", 64)
        self.assertFalse((out / "policy").exists())

    def test_the_published_network_says_what_to_install_where_its_module_is_not(self):
        alone = self.directory / "alone" / "doppler"  # without the modules that lie beside it in a build
        alone.parent.mkdir()
        shutil.copy(DOPPLER, alone)
        done = subprocess.run([alone, "train", self.graph, "--machine", "p100x4", "--episodes", "32", "--architecture",
                               "paper", "--out", self.directory / "run"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--architecture paper: found no doppler_torch module", done.stderr)
        self.assertIn("required a build that found libtorch (Debian: libtorch-dev", done.stderr)

    def test_damaged_and_foreign_checkpoints_are_refused(self):
        out = self.train("run")
        again = ("train", self.graph, "--machine", "p100x4", "--episodes", 320, "--out", out)
        self.fails("holds a training; required --resume", *again, "--seed", 3)
        self.fails("required seed 4", *again, "--seed", 4, "--resume")
        self.fails("required the same graphs, machines with their jitter, rules and objective", *again, "--seed", 3, "--discipline", "ordered",
                   "--resume")
        place = ("place", self.graph, "--machine", "p100x4", "--method", "doppler", "--checkpoint")
        self.fails("required a doppler policy", *place, EXAMPLE)
        self.fails("cannot open", *place, self.directory / "absent")
        content = (out / "checkpoint").read_bytes()
        (out / "checkpoint").write_bytes(content[:-100])
        self.fails("damaged or cut short", *again, "--seed", 3, "--resume")
        (out / "policy").unlink()
        self.fails("damaged or cut short", *place, out)

    def test_the_learned_method_names_the_winner(self):
        # One sample of an untrained policy loses to a list scheduler here; the shipped policy does not.
        untrained = self.train("untrained", "--rate", 0, "--last-rate", 0, "--search", 0, episodes=16)
        layer = self.directory / "layer.json"
        self.ok("generate", "llama-layer", "--plan", "published", "--costs", "published", "-o", layer)
        place = ("place", layer, "--machine", "uniform:4", "--method", "doppler", "--json")
        lost = json.loads(self.ok(*place, "--checkpoint", untrained, "--samples", 0).stdout)
        self.assertIn(lost["winner"], ("heft", "etf", "single"))
        alone = json.loads(self.ok(*place, "--checkpoint", untrained, "--samples", 0, "--alone").stdout)
        self.assertEqual(alone["winner"], "doppler")
        self.assertGreater(alone["makespan"], lost["makespan"])
        won = json.loads(self.ok(*place).stdout)
        self.assertEqual(won["winner"], "doppler")
        self.assertLess(won["makespan"], lost["makespan"])

    def test_specialising_is_at_least_as_good_as_zero_shot(self):
        rows = json.loads(self.ok("compare", self.graph, "--machine", "p100x4", "--methods", "doppler", "--train", "1s",
                                  "--json").stdout)["results"]
        by_method = {row["method"]: row["makespan"] for row in rows}
        self.assertLessEqual(by_method["doppler trained"], by_method["doppler"])


if __name__ == "__main__":
    unittest.main()
