"""ONNX models through the real command. Usage: DOPPLER=path/to/doppler onnx_cli_test.py"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

DOPPLER = os.environ["DOPPLER"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "data" / "onnx"
SHARED = ROOT.parent / "shared" / "data" / "onnx"
LIMIT = 120  # seconds; generous, because sanitizer builds share two cores


def run(*arguments, **options):
    return subprocess.run([DOPPLER, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, **options)


class OnnxTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def ok(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fails(self, message, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, (done.stdout, done.stderr))
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_info_shows_what_an_engineer_asks(self):
        facts = json.loads(self.ok("info", MODELS / "conv.onnx", "--json", "--no-rewrite"))
        # 4×4×4 outputs of 18 products, then 4 through a 4×3 matrix that is a graph input.
        self.assertEqual(facts["macs"], 64 * 18 + 12)
        self.assertEqual(facts["parameters"], 72 + 4 + 12)
        self.assertEqual(facts["parameter_bytes"], 4 * 88)
        # The convolution's output and the Relu's, 4·4·4 floats each.
        self.assertEqual(facts["peak_activation_bytes"], 2 * 64 * 4)
        self.assertEqual((facts["nodes"], facts["folded_nodes"], facts["ops"]), (5, 1, 4))
        self.assertEqual(facts["average_parallelism"], 1)
        self.assertEqual(facts["critical_path"], facts["flops"])
        self.assertAlmostEqual(sum(kind["flops_share"] for kind in facts["kinds"]), 1)
        self.assertAlmostEqual(sum(kind["bytes_share"] for kind in facts["kinds"]), 1)
        text = self.ok("info", MODELS / "conv.onnx", "--machine", "p100x4")
        for part in ["parameters", "GMACs", "activations", "critical path", "of flops", "of bytes"]:
            self.assertIn(part, text)

    def test_published_models_have_their_totals(self):
        if not SHARED.is_dir():
            self.skipTest(f"{SHARED} is absent")
        for name, gigamacs, tolerance, millions in [("resnet50", 4.09, 0.02, 25.5), ("inception_v3", 5.7, 0.02, 23.8),
                                                    ("bert_base_like", 11.2, 0.03, 85.05)]:
            facts = json.loads(self.ok("info", SHARED / f"{name}.onnx", "--json"))
            self.assertAlmostEqual(facts["macs"] / 1e9 / gigamacs, 1, delta=tolerance)
            self.assertAlmostEqual(facts["flops"] / 2e9 / gigamacs, 1, delta=tolerance)
            self.assertAlmostEqual(facts["parameters"] / 1e6, millions, delta=0.05)

    def test_sharding_beats_whole_ops_on_four_devices(self):
        if not SHARED.is_dir():
            self.skipTest(f"{SHARED} is absent")
        # heft alone; bench/sharding has the table with a search.
        for name, faster in [("resnet50", 1.5), ("bert_base_like", 1.2)]:
            place = ["place", SHARED / f"{name}.onnx", "--machine", "p100x4", "--method", "heft", "--json"]
            whole, cut = json.loads(self.ok(*place, "--no-rewrite")), json.loads(self.ok(*place, "--shard", 4))
            self.assertGreater(whole["makespan"] / cut["makespan"], faster)

    def test_every_verb_takes_a_model(self):
        model, placement = MODELS / "conv.onnx", self.directory / "p.json"
        for flags in [[], ["--shard", 2]]:
            placed = json.loads(self.ok("place", model, "-m", "p100x4", "--method", "heft", "-o", placement, "--json",
                                        *flags))
            simulated = json.loads(self.ok("simulate", model, placement, "-m", "p100x4", "--json", *flags))
            self.assertEqual(simulated["makespan"], placed["makespan"])
            self.ok("compare", model, "-m", "p100x4", "--methods", "heft,single", "--time", "100ms", *flags)
        with open(model, "rb") as stream:
            self.ok("info", "-", stdin=stream)
        graph = self.directory / "g.json"
        self.ok("lower", model, "--parts", 2, "-o", graph)
        cut = json.loads(self.ok("info", model, "--shard", 2, "--json"))
        self.assertEqual(json.loads(self.ok("info", graph, "--json"))["ops"], cut["ops"])
        self.ok("lower", model, "--plan", "uncut", "-o", graph)
        self.assertEqual(json.loads(self.ok("info", graph, "--json"))["ops"], 3)  # the Relu is in the Conv

    def test_symbols_get_sizes(self):
        model = MODELS / "attention.onnx"
        self.fails("required --dim batch=N", "info", model)
        one = json.loads(self.ok("info", model, "--dim", "batch=1", "--json"))
        eight = json.loads(self.ok("info", model, "--dim", "batch=8", "--json"))
        self.assertEqual(eight["macs"], 8 * one["macs"])
        self.ok("lower", model, "--dim", "batch=8", "-o", self.directory / "g.json")

    def test_a_placement_is_written_back_into_the_model(self):
        model, placed = MODELS / "conv.onnx", self.directory / "placed.onnx"
        self.ok("place", model, "-m", "v100x4", "--method", "single", "--export", "onnx", "-o", placed)
        self.assertEqual(placed.read_bytes().count(b"doppler.device"), 5)  # one per node, folded ones included
        again = self.directory / "again.onnx"  # the new device replaces the old one
        self.ok("place", placed, "-m", "v100x4", "--method", "round_robin", "--export", "onnx", "-o", again)
        self.assertEqual(again.read_bytes().count(b"doppler.device"), 5)
        before, after = (json.loads(self.ok("info", file, "--json")) for file in (model, placed))
        self.assertEqual(before["flops"], after["flops"])

    def test_a_device_map_names_modules(self):
        out = self.directory / "map.json"
        self.ok("place", MODELS / "conv.onnx", "-m", "v100x4", "--method", "round_robin", "--export", "device-map", "-o",
                out, "--no-rewrite")
        self.assertEqual(json.loads(out.read_text()), {"conv": 0, "relu": 1, "pool": 2, "fc": 3})
        if not SHARED.is_dir():
            self.skipTest(f"{SHARED} is absent")
        bert = ["place", SHARED / "bert_base_like.onnx", "-m", "v100x4", "--export", "device-map", "-o", out]
        self.ok(*bert, "--method", "single")
        devices = json.loads(out.read_text())
        self.assertEqual([devices[f"layers.{i}"] for i in range(12)], [0] * 12)

    def test_published_architectures_are_generated_placed_and_cut(self):
        model, out = self.directory / "model.onnx", self.directory / "map.json"
        self.ok("generate", "resnet50", "--image", 64, "-o", model)
        facts = json.loads(self.ok("info", model, "--json"))
        self.assertEqual((facts["format"], facts["warnings"]), ("onnx", []))
        self.ok("place", model, "-m", "v100x4", "--method", "single", "--export", "device-map", "-o", out)
        self.assertEqual(json.loads(out.read_text())["layer3"], 0)
        self.ok("place", model, "-m", "v100x4", "--method", "heft", "--shard", 2)
        self.ok("generate", "bert-base", "--layers", 1, "--width", 32, "--heads", 2, "--hidden", 64, "--vocabulary", 20,
                "--weights", 1, "-o", model)
        self.assertEqual(json.loads(self.ok("info", model, "--json"))["warnings"], [])
        self.fails("image: found 100; required a multiple of 16", "generate", "vit-b16", "--image", 100, "-o", model)
        self.fails("heads: found 7 of width 768; required a number that divides it", "generate", "bert-base", "--heads", 7)
        self.fails("--batch: found 0; required at least 1", "generate", "resnet50", "--batch", 0)

    def test_a_model_is_lowered_from_standard_input(self):
        content = (MODELS / "conv.onnx").read_bytes()
        done = subprocess.run([DOPPLER, "lower", "-", "--plan", "uncut"], input=content, capture_output=True,
                              timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        piped, read = json.loads(done.stdout), json.loads(self.ok("lower", MODELS / "conv.onnx", "--plan", "uncut"))
        self.assertEqual(piped["ops"], read["ops"])

    def test_bad_requests_say_what_is_required(self):
        model, native = MODELS / "conv.onnx", ROOT / "examples/blocks.json"
        place = ["place", model, "-m", "p100x4", "--method", "heft"]
        self.fails("--dim: found 'batch'; required NAME=SIZE", "info", model, "--dim", "batch")
        self.fails("names no dimension", "info", model, "--dim", "batch=3")
        self.fails("--shard is for ONNX models", "info", native, "--shard", 2)
        self.fails("--dim is for ONNX models", "info", native, "--dim", "x=2")
        self.fails("--export: found 'dot'; required one of onnx, device-map, ort", *place, "--export", "dot", "-o", "x")
        self.fails("--export: found no -o", *place, "--export", "onnx")
        self.fails("required one device per node", *place, "--export", "onnx", "-o", "x", "--shard", 2)
        self.fails("required an ONNX model", "place", native, "-m", "p100x4", "--export", "onnx", "-o", "x")
        self.fails("--plan: found 'data' for an ONNX model", "lower", model, "--plan", "data")
        self.fails("found --train for an ONNX model", "lower", model, "--train", "sgd")
        bare = self.directory / "bare.json"  # devices for explicit costs alone
        bare.write_text(json.dumps({"format": "doppler-machine", "version": 1,
                                    "devices": [{"name": "d", "type": "gpu", "count": 2}]}))
        self.fails("no compute rates", "info", model, "--shard", 2, "-m", bare)


if __name__ == "__main__":
    unittest.main()
