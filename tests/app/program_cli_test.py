"""The verbs for programs, through the real command. Usage: DOPPLER=path/to/doppler program_cli_test.py"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

DOPPLER = os.environ["DOPPLER"]
EXAMPLE = str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "attention.ein")
LIMIT = 120  # seconds; generous, because sanitizer builds share two cores

SMALL = """size b = 8, d = 4
input x[b, d]
weight w[d, d]
y[b, e] = sum[d] x[b, d] * w[d, e]
l = mean_square_error(y, x)
loss l
"""


def run(*arguments, **options):
    return subprocess.run([DOPPLER, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, **options)


class ProgramTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.small = self.directory / "small.ein"
        self.small.write_text(SMALL)

    def ok(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fails(self, message, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 2, (done.stdout, done.stderr))
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def info(self, graph):
        return json.loads(self.ok("info", graph, "--json"))

    def test_a_program_is_lowered_to_a_graph_that_every_verb_takes(self):
        graph = self.directory / "g.json"
        self.ok("lower", self.small, "--parts", 2, "--plan", "data", "-o", graph)
        # The product and its formation, the error and its formation, each in two blocks but the last.
        self.assertEqual(self.info(graph)["ops"], 2 + 2 + 2 + 1)
        self.ok("place", graph, "--machine", "p100x4", "--method", "heft")

    def test_a_program_is_a_graph_too(self):
        self.assertEqual(self.info(self.small)["format"], "ein")
        self.assertEqual(self.info(self.small)["ops"], 4)
        self.ok("place", self.small, "--machine", "p100x4", "--method", "heft")

    def test_a_program_comes_from_standard_input(self):
        self.assertIn("mean_square_error", self.ok("lower", "-", input=SMALL))

    def test_training_adds_the_backward_pass_and_the_update(self):
        plain = json.loads(self.ok("lower", self.small, "--plan", "uncut"))
        trained = json.loads(self.ok("lower", self.small, "--plan", "uncut", "--train", "adam"))
        self.assertGreater(len(trained["ops"]), len(plain["ops"]))
        groups = [op.get("group") for op in trained["ops"] if op.get("group")]
        self.assertEqual(sorted(set(groups)), sorted(["w[0,0]", "w.m[0,0]", "w.v[0,0]"]))
        self.assertEqual(len(groups), 6)

    def test_explain_shows_plans_and_alternatives(self):
        text = self.ok("explain", EXAMPLE, "--parts", 4)
        for part in ["plans compared", "eindecomp", "logical plan", "physical plan", "alternatives", "LocalJoin"]:
            self.assertIn(part, text)
        plan = json.loads(self.ok("explain", EXAMPLE, "--parts", 4, "--json"))
        self.assertEqual((plan["result"], plan["parts"], plan["sites"]), ("plan", 4, 4))
        self.assertEqual([rival["plan"] for rival in plan["plans"]],
                         ["eindecomp", "relational", "data", "model", "uncut"])

    def test_published_workloads_have_the_published_size(self):
        for name, parts, ops, edges in [("chainmm", 16, 76, 80), ("ffnn", 16, 180, 208), ("llama-block", 4, 182, 234),
                                        ("llama-layer", 8, 367, 470)]:
            graph = self.directory / "p.json"
            self.ok("generate", name, "--parts", parts, "--plan", "published", "--costs", "published", "-o", graph)
            facts = self.info(graph)
            self.assertEqual((facts["ops"], facts["edges"], facts["unit"]), (ops, edges, "graph"))

    def test_sizes_of_workloads_are_flags(self):
        graph = self.directory / "p.json"
        self.ok("generate", "llama", "--layers", 2, "--batch", 2, "--sequence", 16, "--width", 32, "--heads", 4,
                "--hidden", 24, "--vocabulary", 10, "--train", "sgd", "--parts", 2, "-o", graph)
        self.ok("generate", "llama", "--layers", 2, "--sequence", 16, "--decode", "--parts", 2, "-o", graph)
        self.ok("generate", "ffnn", "--batch", 32, "--hidden", 16, "--layers", 3, "--train", "adam", "-o", graph)
        self.ok("generate", "chainmm", "--size", 64, "--matrices", 7, "--association", "random", "--seed", 3,
                "--costs", "seconds", "-o", graph)

    def test_graphs_carry_the_program_that_they_came_from(self):
        lowered = json.loads(self.ok("lower", self.small, "--plan", "data"))
        self.assertEqual([e["name"] for e in lowered["program"]["expressions"]][:4], ["x", "w", "y.partial", "y"])
        for dtype in ["f16", "f32", "f64"]:
            graph = json.loads(self.ok("generate", "llama-layer", "--sequence", 8, "--width", 16, "--heads", 2,
                                       "--hidden", 8, "--vocabulary", 4, "--dtype", dtype))
            self.assertEqual(graph["program"]["expressions"][0]["dtype"], dtype)

    def test_bad_input_says_where(self):
        bad = self.directory / "bad.ein"
        bad.write_text("input x[4]\ny = nothing(x)\n")
        self.fails("bad.ein:2:5: found 'nothing'; required one of", "lower", bad)
        self.fails("--plan: found 'best'; required eindecomp, data, model, uncut", "lower", self.small, "--plan", "best")
        self.fails("--parts: found 0", "lower", self.small, "--parts", 0)
        self.fails("train: found 'lion'; required sgd or adam", "lower", self.small, "--train", "lion")
        self.fails("published plan: found 5 parts", "generate", "llama", "--parts", 5, "--plan", "published")
        bare = self.directory / "bare.json"  # devices for explicit costs alone
        bare.write_text('{"format": "doppler-machine", "version": 1, "devices": [{"name": "d", "type": "gpu"}]}')
        self.fails("no compute rates", "lower", self.small, "--machine", bare)
        self.fails("model: found '8b'", "generate", "llama", "--model", "8b")
        self.fails("--dtype: found 'i8'; required f16, f32 or f64", "generate", "ffnn", "--dtype", "i8")
        no_loss = self.directory / "no_loss.ein"
        no_loss.write_text("input x[4]\ny = exp(x)\n")
        self.fails("--train: found no loss", "lower", no_loss, "--train", "sgd")


if __name__ == "__main__":
    unittest.main()
