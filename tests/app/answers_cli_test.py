"""Answers that people can use, through the real command. Usage: DOPPLER=path/to/doppler answers_cli_test.py"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

from command import CommandCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "data" / "onnx"
SHARED = ROOT.parent / "shared" / "data" / "onnx"


class AnswersCase(CommandCase):
    def write(self, name, content):
        path = self.directory / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def graph(self, ops, edges=()):
        """Ops as (name, seconds) and edges as (from, to, seconds to move)."""
        return self.write("g.json", {
            "format": "doppler-graph", "version": 1,
            "ops": [{"name": name, "times": {"*": seconds}} for name, seconds in ops],
            "tensors": [{"producer": a, "transfer": t, "consumers": [b]} for a, b, t in edges]})

    def result(self, *arguments):
        return json.loads(self.ok(*arguments, "--json").stdout)

    def need(self, name):
        if not SHARED.is_dir():
            self.skipTest(f"{SHARED} is absent")
        return SHARED / name


class Maps(AnswersCase):
    def test_of_bert_covers_every_module_with_parameters_once(self):
        model, out = self.need("bert_base_like.onnx"), self.directory / "map.json"
        self.ok("place", model, "-m", "v100x4", "--time", "1s", "--export", "device-map", "-o", out)
        devices = json.loads(out.read_text())
        self.assertLessEqual(len(devices), 40)
        names = set(re.findall(rb"layers\.\d+(?:\.[a-z_0-9]+)+\.(?:weight|bias)|layers\.\d+\.self_attn\.in_proj_\w+",
                               model.read_bytes()))
        self.assertGreater(len(names), 100)
        for name in names:
            covering = [key for key in devices if name.decode() == key or name.decode().startswith(key + ".")]
            self.assertEqual(len(covering), 1, name)
        self.assertTrue(all(isinstance(device, int) for device in devices.values()))

    def test_of_resnet_have_no_module_on_two_devices(self):
        model, out = self.need("resnet50.onnx"), self.directory / "map.json"
        self.ok("place", model, "-m", "p100x4", "--method", "round_robin", "--export", "device-map", "-o", out)
        keys = list(json.loads(out.read_text()))
        self.assertGreater(len(keys), 4)
        for key in keys:
            self.assertFalse(any(other.startswith(key + ".") for other in keys), key)
            self.assertNotRegex(key, r"/|Constant|relu_\d")

    def test_that_would_split_a_module_are_refused(self):
        self.fails("is on several devices; required one, as --granularity module makes it", "place",
                   self.need("resnet50.onnx"), "-m", "p100x4", "--method", "round_robin", "--granularity", "op",
                   "--export", "device-map", "--no-rewrite", "-o", self.directory / "map.json")

    def test_of_others_are_simulated_compared_and_improved(self):
        # 3 on device 0, 2 on the way, 4 on device 1.
        graph = self.graph([("/layers.0/a/MatMul", 3), ("/layers.1/a/MatMul", 4)], [(0, 1, 2)])
        mine = self.write("map.json", {"layers.0": 0, "layers.1": 1})
        self.assertEqual(self.result("simulate", graph, mine, "-m", "uniform:2")["makespan"], 9)
        settings = self.write("settings", "gpu:0(layers.0); gpu:1(=layers.1)\n")
        self.assertEqual(self.result("simulate", graph, settings, "-m", "uniform:2")["makespan"], 9)
        everything = self.write("all.json", {"": 1})
        self.assertEqual(self.result("simulate", graph, everything, "-m", "uniform:2")["makespan"], 7)
        rows = self.result("compare", graph, "-m", "uniform:2", "--methods", "heft", "--placement", mine, "--placement",
                           everything)["results"]
        self.assertEqual([(row["method"], row["makespan"]) for row in rows][1:3], [(str(mine), 9), (str(everything), 7)])
        placed = self.result("place", graph, "-m", "uniform:2", "--start", everything, "--method", "round_robin")
        self.assertEqual((placed["makespan"], placed["winner"]), (7, "start"))

    def test_with_wrong_names_list_them_with_suggestions(self):
        graph = self.graph([("/layers.0/a/MatMul", 3), ("/layers.1/a/MatMul", 4)], [(0, 1, 2)])
        on = ["-m", "uniform:2"]
        self.fails("no op or module is called 'layrs.1' (did you mean 'layers.1'?)", "simulate", graph,
                   self.write("m", {"layers.0": 0, "layrs.1": 1}), *on)
        self.fails("no device for 'layers.1.a'; required one for every op", "simulate", graph,
                   self.write("m", {"layers.0": 0}), *on)
        self.fails("found device 7; required an accelerator", "simulate", graph, self.write("m", {"": 7}), *on)
        self.fails("which computes nothing", "simulate", graph, self.write("m", {"": "disk"}), *on)
        self.fails("required a placement file, a JSON object", "simulate", graph, self.write("m", "hello"), *on)

    def test_of_layers_are_written_as_other_programs_take_them(self):
        model = self.need("bert_base_like.onnx")
        mine = self.write("map.json", {f"layers.{i}": int(i >= 5) for i in range(12)})
        out = self.directory / "out"
        keep = ["--start", mine, "--method", "round_robin", "--tolerance", "0"]
        self.ok("place", model, "-m", "v100x4", *keep, "--export", "layers", "-o", out)
        strings = json.loads(out.read_text())
        counts = list(map(int, re.fullmatch(r"VLLM_PP_LAYER_PARTITION=([\d,]+)", strings["vllm"]).group(1).split(",")))
        self.assertEqual(sum(counts), 12)
        layout = re.fullmatch(r"--pipeline-model-parallel-layout (E[t|]+L)", strings["megatron"]).group(1)
        self.assertEqual([stage.count("t") for stage in layout.split("|")], counts)
        parts = strings["torchtitan"]["module_fqns_per_model_part"]
        self.assertEqual([name for part in parts for name in part if name.startswith("layers.")],
                         [f"layers.{i}" for i in range(12)])
        self.ok("place", model, "-m", "v100x4", *keep, "--export", "llama-cpp", "-o", out)
        blocks = re.findall(r'^-ot "blk\\\.\(([\d|]+)\)\\\.=(CUDA\d|CPU)"$', out.read_text(), re.M)
        self.assertEqual(sorted(int(i) for numbers, _ in blocks for i in numbers.split("|")), list(range(12)))

    def test_for_onnx_runtime_annotate_every_node(self):
        out = self.directory / "annotated.onnx"
        done = self.ok("place", MODELS / "conv.onnx", "-m", "v100x4", "--method", "round_robin", "--export", "ort", "-o", out)
        settings = re.search(r'session.layer_assignment_settings = "(.*)"', done.stderr).group(1)
        for rule in settings.split("; "):
            self.assertRegex(rule, r"^(cpu|gpu:\d+)\(=\w+\)$")
        content = out.read_bytes()
        self.assertEqual(content.count(b"layer_ann"), 5)
        self.assertIn(settings.encode(), content)

    def test_a_placement_of_another_graph_is_refused(self):
        first, placement = self.graph([("a", 1), ("b", 1)]), self.directory / "p.json"
        self.ok("place", first, "-m", "uniform:2", "--method", "heft", "-o", placement)
        other = self.graph([("a", 1), ("c", 1)])
        self.fails("a graph of other ops or edges", "simulate", other, placement, "-m", "uniform:2")


class Simplicity(AnswersCase):
    def test_takes_fewer_devices_within_the_tolerance(self):
        graph = self.graph([("a", 3), ("b", 4)])  # 4 on two devices, 7 on one
        self.assertEqual(self.result("place", graph, "-m", "uniform:4", "--evaluations", 50)["devices_used"], 2)
        one = self.result("place", graph, "-m", "uniform:4", "--evaluations", 50, "--tolerance", "80%")
        self.assertEqual((one["devices_used"], one["makespan"]), (1, 7))
        self.assertEqual(one["placement"]["assignment"], [0, 0])
        self.fails("--tolerance: found 'much'; required a share", "place", graph, "-m", "uniform:2", "--tolerance", "much")

    def test_says_that_a_chain_needs_one_device(self):
        graph = self.graph([("a", 3), ("b", 4)], [(0, 1, 2)])
        text = self.ok("place", graph, "-m", "uniform:2", "--evaluations", 50).stdout
        self.assertIn("one device is enough: there is next to no parallelism (work over longest chain 1.00), and no "
                      "placement can be more than 0.0 % faster", text)

    def test_of_cuts_is_never_worse_than_uncut(self):
        model = self.directory / "bert.onnx"
        self.ok("generate", "bert-base", "--layers", 1, "--sequence", 64, "-o", model)
        uncut = self.result("place", model, "-m", "p100x4", "--method", "heft")
        cut = self.result("place", model, "-m", "p100x4", "--method", "heft", "--shard", "auto")
        self.assertLessEqual(cut["makespan"], uncut["makespan"] * 1.0001)
        self.assertEqual(cut["single_device_makespan"], uncut["single_device_makespan"])
        four = self.result("place", model, "-m", "p100x4", "--method", "heft", "--shard", 4)
        self.assertEqual(four["single_device_makespan"], uncut["single_device_makespan"])
        self.fails("found --shard auto; required a number", "info", model, "--shard", "auto")


class Reasons(AnswersCase):
    def setUp(self):
        super().setUp()
        # 3 on device 0, 2 on the way, 4 on device 1: 9; beside one another 7.
        self.pair = self.graph([("a", 3), ("b", 4)], [(0, 1, 2)])
        self.apart = self.write("apart.json", {"a": 0, "b": 1})
        self.together = self.write("together.json", {"": 0})

    def test_name_the_chain_and_what_another_device_costs(self):
        answer = self.result("why", self.pair, self.apart, "b", "-m", "uniform:2")
        self.assertEqual([(step["name"], step["transfer"], step["waits_for"]) for step in answer["chain"]],
                         [("a", False, "nothing"), ("a", True, "data"), ("b", False, "transfer")])
        self.assertEqual(answer["limit"], "links")
        self.assertEqual(answer["units"][0]["elsewhere"], [{"device": "device0", "makespan": 7}])
        text = self.ok("why", self.pair, self.apart, "b", "-m", "uniform:2").stdout
        self.assertIn("'device0' would be better, by 2 s", text)
        self.fails("no op or module is called 'bb'", "why", self.pair, self.apart, "bb", "-m", "uniform:2")

    def test_fill_causes(self):
        out = self.directory / "causes.json"
        self.ok("why", self.pair, self.together, "-m", "uniform:2", "-o", out)
        self.assertEqual(json.loads(out.read_text())["causes"], ["makespan", "makespan"])

    def test_for_a_difference_say_what_each_move_wins(self):
        answer = self.result("diff", self.pair, self.apart, self.together, "-m", "uniform:2")
        self.assertEqual((answer["a"]["makespan"], answer["b"]["makespan"]), (9, 7))
        self.assertEqual(answer["moved"], [{"name": "b", "from": "device1", "to": "device0", "ops": 1, "alone": 7}])


class Fits(AnswersCase):
    def test_say_what_is_needed_and_what_would_do(self):
        graph = self.write("g.json", {"format": "doppler-graph", "version": 1, "tensors": [], "ops": [
            {"name": f"/layers.{i}/a/MatMul", "times": {"*": 1}, "parameter_bytes": 100 << 20} for i in range(3)]})
        done = self.fails("needs at least 300 MiB (parameters 300 MiB", "place", graph, "-m", "uniform:2:120MiB", code=3)
        self.assertIn("has 240 MiB on 2 devices", done.stderr)
        self.assertIn("would fit with 1 more device like 'device0', or with numbers of half the size", done.stderr)
        self.ok("place", graph, "-m", "uniform:3:120MiB", "--method", "heft")
        self.fails("needs at least", "place", graph, "-m", "uniform:3:120MiB", "--reserve", "50%", code=3)

    def test_machines_are_listed_and_written_as_files_to_edit(self):
        self.assertRegex(self.ok("machines").stdout, r"h100 +80 GiB")
        path = self.directory / "mine.json"
        self.ok("machines", "rtx4090:1+rtx3060:1", "-o", path)
        names = [device["name"] for device in json.loads(path.read_text())["devices"]]
        self.assertEqual(names, ["gpu0", "gpu1"])
        self.ok("info", MODELS / "conv.onnx", "-m", path)
        topo = self.write("topo", "\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n")
        self.ok("machines", "a100:2", "--topo", topo)
        self.fails("did you mean 'h100:4'", "info", MODELS / "conv.onnx", "-m", "h10:4")
        self.assertIn("kinds", self.result("machines"))

    def test_uniform_machines_take_every_graph(self):
        self.ok("place", MODELS / "conv.onnx", "-m", "uniform:4:1GiB", "--method", "heft")


class Times(AnswersCase):
    def setUp(self):
        super().setUp()
        # On a uniform machine these take 1 s and 2 s; the second is guessed from the first.
        self.model = self.write("g.json", {"format": "doppler-graph", "version": 1, "ops": [
            {"name": "/layers.0/x/MatMul", "kind": "matmul", "flops": 1e12},
            {"name": "/layers.0/y/MatMul", "kind": "matmul", "flops": 2e12}],
            "tensors": [{"producer": 0, "consumers": [1]}]})

    def makespan(self, times):
        return self.result("place", self.model, "-m", "uniform:1", "--method", "single", "--times", times)["makespan"]

    def test_of_csv_and_profiles_replace_models(self):
        csv = self.write("t.csv", "name,seconds\n/layers.0/x/MatMul,0.5\n")
        self.assertAlmostEqual(self.makespan(csv), 1.5)  # 0.5 and half of 2
        profile = self.write("ort.json", [{"cat": "Node", "ph": "X", "name": "/layers.0/x/MatMul_kernel_time", "dur": 5e5,
                                           "args": {"op_name": "MatMul"}},
                                          {"cat": "Node", "ph": "X", "name": "/layers.0/x/MatMul_fence_before", "dur": 9}])
        self.assertAlmostEqual(self.makespan(profile), 1.5)
        module = self.write("torch.json", {"traceEvents": [{"ph": "X", "name": "layers.0", "dur": 6e6}]})
        self.assertAlmostEqual(self.makespan(module), 6)  # 2 and 4 of the module's 6
        done = self.ok("place", self.model, "-m", "uniform:1", "--method", "single", "--times", csv)
        self.assertIn("1 of 2 ops are measured on 'uniform', 33.3 % of the time", done.stderr)

    def test_that_are_wrong_are_refused_with_their_line(self):
        for message, content in [("t:2: found 'b'; required name,seconds", "/layers.0/x/MatMul,1\nb\n"),
                                 ("t:1: 'a' takes -1 s", "a,-1\n"),
                                 ("is that of an op or module", "nobody,1\n"),
                                 ("found no times", "name,seconds\n"),
                                 ("no 'traceEvents'", "{}")]:
            self.fails(message, "place", self.model, "-m", "uniform:1", "--times", self.write("t", content))


class Forgiveness(AnswersCase):
    def test_suggests_what_was_meant(self):
        graph = self.graph([("alpha", 1), ("beta", 1)])
        for message, *arguments in [
            ("did you mean 'place'?", "plcae"),
            ("found '--methd', which is no flag of it; required one of 'doppler help place'; did you mean '--method'?",
             "place", graph, "-m", "uniform:2", "--methd", "heft"),
            ("did you mean '--machine'?", "place", graph, "--machin", "uniform:2"),
            ("did you mean 'heft'?", "place", graph, "-m", "uniform:2", "--method", "hefd"),
            ("did you mean 'vit-b16'?", "generate", "vitb16"),
            ("did you mean 'alpha'?", "place", graph, "-m", "uniform:2", "--pin", "alhpa=0"),
            ("an ONNX model, or a program (.ein)", "info", ROOT / "README.md"),
            ("with a jitter of 0", "place", graph, "-m", "uniform:2", "--objective", "p95"),
            ("found 'b.json' after all that it takes", "place", graph, "b.json", "-m", "uniform:2"),
        ]:
            self.fails(message, *arguments)

    def test_has_help_of_verbs_and_of_words(self):
        self.assertIn("--granularity", self.ok("help", "place").stdout)
        self.assertIn("--image", self.ok("help", "generate", "resnet50").stdout)
        self.assertIn("critical_path", self.ok("help", "bounds").stdout)
        self.assertIn("disciplines", self.ok("help").stdout)
        self.fails("did you mean 'bounds'?", "help", "bunds")

    def test_completes_in_shells(self):
        bash = self.ok("completion", "bash").stdout
        self.assertIn("--granularity", bash)
        script = self.write("completion", bash + 'COMP_WORDS=(doppler pla); COMP_CWORD=1; _doppler; echo "${COMPREPLY[@]}"\n'
                            'COMP_WORDS=(doppler place --gran); COMP_CWORD=2; _doppler; echo "${COMPREPLY[@]}"\n')
        done = subprocess.run(["bash", script], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout.split("\n")[:2], ["place", "--granularity"], done.stderr)
        self.assertTrue(self.ok("completion", "zsh").stdout.startswith("#compdef doppler"))
        self.assertIn("complete -c doppler", self.ok("completion", "fish").stdout)
        self.assertIn('.SH "doppler place"', self.ok("completion", "man").stdout)

    def test_pins_modules_and_patterns(self):
        graph = self.graph([("/layers.0/a/MatMul", 1), ("/layers.0/b/MatMul", 1), ("/layers.1/a/MatMul", 1)])
        for pin, expected in [("layers.0=1", [1, 1]), ("*a*=1", [1, None, 1])]:
            placed = self.result("place", graph, "-m", "uniform:2", "--method", "round_robin", "--pin", pin)
            for op, device in enumerate(expected):
                if device is not None:
                    self.assertEqual(placed["placement"]["assignment"][op], device)

    def test_keeps_quiet_everywhere(self):
        self.ok("generate", "layered", "--ops", 5, "-q", "-o", self.directory / "x.json")
        self.ok("generate", "resnet50", "--image", 32, "-q", "-o", self.directory / "x.onnx")
        self.ok("lower", ROOT / "examples" / "attention.ein", "-q", "-o", self.directory / "y.json")

    def test_takes_the_same_flags_in_every_verb(self):
        graph = self.graph([("a", 1), ("b", 1)])
        help_text = self.ok("help").stdout
        self.assertIn("Usage: doppler [OPTIONS] SUBCOMMAND", help_text)
        verbs = re.findall(r"^  ([a-z]+) ", help_text[help_text.index("Subcommands:"):].split("Example")[0], re.M)
        self.assertGreater(len(verbs), 15)
        for verb in verbs:
            text = self.ok("help", verb).stdout
            subcommands = re.findall(r"^  ([a-z0-9-]+) ", text[text.index("Subcommands:"):].split("Example")[0], re.M) if "Subcommands:" in text else []
            for words in [[verb, sub] for sub in subcommands] or [[verb]]:
                text = self.ok("help", *words).stdout
                for flag in ("--json", "--seed", "--quiet"):
                    self.assertIn(flag, text, words)
        # Where they mean nothing they change nothing.
        plain = self.ok("generate", "layered", "--ops", 5).stdout
        self.assertEqual(self.ok("generate", "layered", "--ops", 5, "--json", "-q").stdout, plain)
        self.assertEqual(self.ok("machines", "h100:2", "--seed", 7).stdout, self.ok("machines", "h100:2").stdout)
        self.assertIn("change nothing", re.sub(r"\s+", " ", self.ok("help", "flags", "--json", "--seed", 1, "-q").stdout))
        self.assertEqual(self.result("diff", graph, self.write("m", {"": 0}), self.write("n", {"": 1}), "-m", "uniform:2", "--seed", 3)["ops_moved"], 2)

    def test_refuses_what_cannot_be_written_before_it_works(self):
        graph = self.graph([("a", 1), ("b", 1)])
        begun = time.monotonic()
        self.fails("in no directory that exists", "place", graph, "-m", "uniform:2", "--time", "60s", "-o", "/nonexistent/x")
        self.fails("is a directory; required a file", "place", graph, "-m", "uniform:2", "--time", "60s", "--json", self.directory)
        self.assertLess(time.monotonic() - begun, 30)

    def test_refuses_flags_that_would_do_nothing(self):
        graph = self.graph([("a", 1), ("b", 1)])
        for method in (["place", "--method", "heft"], ["compare", "--methods", "heft,etf"]):
            self.fails("checkpoint: found", method[0], graph, "-m", "uniform:2", *method[1:], "--checkpoint", ROOT / "models" / "doppler.policy")
        self.fails("which is trained on; required graphs that the policy does not see", "train", graph, "-m", "uniform:2",
                   "--held-out", graph, "--episodes", 16, "--out", self.directory / "run")

    def test_lists_the_inputs_of_a_static_model(self):
        self.fails("names no dimension; required no name, as all sizes are fixed, but an input, such as 'x:0'", "info",
                   MODELS / "conv.onnx", "--dim", "batch=3")

    def test_says_that_time_is_a_total_and_gives_back_what_a_training_found(self):
        graph, out = self.directory / "g.json", self.directory / "run"
        self.ok("generate", "layered", "--ops", 30, "-o", graph)
        training = ["train", graph, "-m", "p100x4", "--jitter", 0, "--time", "1s", "--out", out]
        best = json.loads(self.ok(*training, "--json").stdout)["results"][0]["best"]
        self.assertIn("note: --time 1s is the total;", self.ok(*training, "--resume").stderr)
        placed = self.result("place", graph, "-m", "p100x4", "--jitter", 0, "--method", "doppler", "--checkpoint", out)
        self.assertLessEqual(placed["makespan"], best)

    def test_names_graphs_by_their_path(self):
        graph = self.write("g.json", {"format": "doppler-graph", "version": 1, "title": "a title", "tensors": [],
                                      "ops": [{"name": "a", "times": {"*": 1}}]})
        self.fails(f"{graph}: no op named 'zz'", "place", graph, "-m", "uniform:2", "--pin", "zz=0")
        self.fails(f"{graph}: no op or module is called 'zz'", "why", graph, self.write("m", {"": 0}), "zz", "-m", "uniform:2")

    def test_says_that_the_expected_time_is_not_known(self):
        graph = self.directory / "big.json"
        self.ok("generate", "layered", "--ops", 30000, "-o", graph)
        done = self.ok("place", graph, "-m", "p100x4", "--method", "memory_greedy", "--time", "10ms", "-q")
        if not re.search(r"^expected +\d", done.stdout, re.M):
            self.assertIn("expected     not known: times vary by", done.stdout)

    def test_reads_results_of_older_versions(self):
        graph = self.graph([("a", 1), ("b", 1)])
        path = self.directory / "result.json"
        self.ok("place", graph, "-m", "uniform:2", "--method", "heft", "--json", path)
        result = json.loads(path.read_text())
        del result["jitter"]
        path.write_text(json.dumps(result))
        self.ok("report", path, "-o", self.directory / "page.html")


class OneDevice(AnswersCase):
    def test_is_one_or_says_that_it_cannot_be(self):
        graph = self.write("g.json", {"format": "doppler-graph", "version": 1, "tensors": [], "ops": [
            {"name": name, "times": {"*": 1}, "parameter_bytes": 100 << 20} for name in ("a", "b")]})
        self.fails("single: none of 2 devices can run and hold the whole graph; required one that can, or another method",
                   "place", graph, "-m", "uniform:2:150MiB", "--method", "single", code=3)
        near = self.result("place", graph, "-m", "uniform:2:150MiB", "--method", "near_single")
        self.assertEqual(sorted(near["placement"]["assignment"]), [0, 1])
        self.assertEqual(self.result("place", graph, "-m", "uniform:2:250MiB", "--method", "single")["devices_used"], 1)
        rows = self.result("compare", graph, "-m", "uniform:2:150MiB", "--methods", "single,heft")["results"]
        self.assertEqual([row["feasible"] for row in rows], [False, True])


class Noise(AnswersCase):
    def setUp(self):
        super().setUp()
        self.program, self.placement = self.directory / "p.json", self.directory / "placement.json"
        self.ok("generate", "chainmm", "--size", 512, "--parts", 4, "-o", self.program)
        self.ok("place", self.program, "-m", "cpu2", "--method", "heft", "-o", self.placement)

    def measured(self, *arguments):
        done = self.ok("run", self.program, self.placement, "-m", "cpu2", "--json", *arguments)
        return json.loads(done.stdout), done.stderr

    def test_of_other_processes_is_said_and_has_its_own_column(self):
        # Two busy threads per core beside ours: the kernel gives each a third.
        hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
        try:
            result, said = self.measured("--repeat", 10, "--warmup", 0, "--no-one-device")
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
        self.assertGreater(result["others"], 0.05)
        self.assertIn("other processes had the cores", result["noise"])
        self.assertIn("warning: these times mean little", said)
        for device in result["device_times"]:
            parts = sum(device[key] for key in ("busy", "copying", "data", "channel", "memory", "others", "done"))
            self.assertAlmostEqual(parts, result["last"], delta=1e-3 * result["last"] + 1e-6)

    def test_ends_in_time_with_what_it_has(self):
        begun = time.monotonic()
        result, said = self.measured("--repeat", 1000000, "--time", "1s", "--no-one-device")
        self.assertLess(time.monotonic() - begun, 60)
        self.assertEqual(result["asked_for"], 1000000)
        self.assertGreater(len(result["times"]), 0)
        self.assertRegex(said, r"note: made \d+ of 1000000 runs in --time 1s")
        box = self.directory / "box.json"
        self.ok("calibrate", self.program, "--repeat", 100000, "--placements", 2, "--time", "1s", "-q", "-o", box)
        self.assertIn("devices", json.loads(box.read_text()))


if __name__ == "__main__":
    unittest.main()
