#!/usr/bin/env python3
"""--engine starpu as a user calls it: DOPPLER=path starpu_cli_test.py."""
import json
import unittest

from command import CommandCase


class StarpuTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.graph, self.placement = self.directory / "g.json", self.directory / "p.json"
        self.ok("generate", "ffnn", "--batch", 64, "--input", 16, "--hidden", 128, "--output-width", 16, "--parts", 4,
                "-o", self.graph)
        self.ok("place", self.graph, "--machine", "cpu2", "--method", "heft", "-o", self.placement)

    def run_by(self, engine, *more):
        return self.ok("run", self.graph, self.placement, "--machine", "cpu2", "--engine", engine, "--repeat", 2, *more)

    def test_computes_the_same_bits_as_our_own_engine(self):
        for engine in ("threads", "starpu"):
            self.run_by(engine, "--deterministic", "--output", self.directory / engine)
        files = sorted(path.name for path in (self.directory / "threads").iterdir())
        self.assertTrue(files)
        for file in files:
            self.assertEqual((self.directory / "threads" / file).read_bytes(),
                             (self.directory / "starpu" / file).read_bytes())

    def test_says_nothing_of_its_own_and_leaves_a_timeline_of_every_op(self):
        done = self.run_by("starpu", "--timeline", "--json", self.directory / "r.json")
        self.assertEqual(done.stderr, "")
        ops = json.loads(self.graph.read_text())["ops"]
        self.assertEqual(len(json.loads((self.directory / "r.json").read_text())["schedule"]["ops"]["name"]), len(ops))

    def test_calibrates_and_validates(self):
        box = self.directory / "box.json"
        self.ok("calibrate", self.graph, "--engine", "starpu", "--placements", 2, "--repeat", 2, "-o", box, "-q")
        self.ok("validate", self.graph, "-m", box, "--engine", "starpu", "--placements", 4, "--repeat", 2, "-q")

    def test_follows_priorities(self):
        self.ok("place", self.graph, "--machine", "cpu2", "--discipline", "priority", "--method", "heft", "-o",
                self.placement)
        self.assertIn("measured", self.run_by("starpu", "--discipline", "priority").stdout)

    def test_refuses_what_it_cannot_run(self):
        for words, said in ((("--devices", "emulated"), "--engine starpu: found --devices emulated; required cpu"),
                            (("--discipline", "random"), "required fifo, priority or ordered")):
            self.fails(said, "run", self.graph, self.placement, "--machine", "cpu2", "--engine", "starpu", "-q",
                       *words)


if __name__ == "__main__":
    unittest.main()
