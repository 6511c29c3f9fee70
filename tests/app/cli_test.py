"""Runs the real command. Usage: DOPPLER=path/to/doppler cli_test.py [unittest arguments]"""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest

DOPPLER = os.environ["DOPPLER"]
EXAMPLE = str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "blocks.json")
LIMIT = 120  # seconds; generous, because sanitizer builds share two cores

# Two independent tasks of 3 and 4 between zero-time dummies: 7 on one device, 4 on two.
STG = "2\n0 0 0\n1 3 1 0\n2 4 1 0\n3 0 2 1 2\n"


def run(*arguments, **options):
    return subprocess.run([DOPPLER, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, **options)


def verbs():
    """Every verb that `doppler --help` lists, so that none can be forgotten here."""
    text = run("--help").stdout
    return re.findall(r"^  ([a-z]+)  +\S", text[text.index("Subcommands:"):text.index("Example:")], re.M)


def methods():
    """Those that need no training of their own before they answer."""
    text = run("place", "--help").stdout
    text = re.sub(r"^.*needs --train or --checkpoint\n", "", text, flags=re.M)
    return re.findall(r"^\s+([a-z_]+)  +\S", text[text.index("How to place:"):text.index("-o,--output")], re.M)


class CommandTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.stg = self.write("two.stg", STG)

    def write(self, name, content):
        path = self.directory / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def machine(self, **device):
        return self.write("machine.json", {
            "format": "doppler-machine", "version": 1,
            "devices": [{"name": "gpu", "type": "gpu", "count": 2, "rates": [{"flops_per_second": 1e12}], **device}]})

    def ok(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fails(self, code, message, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        self.assertTrue(done.stderr.startswith("doppler: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(message, done.stderr)
        return done

    def placed(self, graph, machine, *arguments):
        path = self.directory / "placement.json"
        self.ok("place", graph, "--machine", machine, "-o", path, *arguments)
        return path


class Help(CommandTest):
    def test_of_every_verb_has_an_example(self):
        self.assertLessEqual({"info", "place", "run", "calibrate", "validate"}, set(verbs()))
        for arguments in [[], *([verb] for verb in verbs()), ["generate", "layered"]]:
            with self.subTest(arguments):
                done = self.ok(*arguments, "--help")
                self.assertIn("Example:\n  doppler ", done.stdout)
                if arguments:
                    self.assertIn(f"doppler {arguments[0]} ", done.stdout[done.stdout.index("Example:"):])
                self.assertEqual(done.stderr, "")

    def test_says_the_version(self):
        self.assertRegex(self.ok("--version").stdout, r"^doppler \d+\.\d+\.\d+\n$")

    def test_of_place_lists_the_methods(self):
        self.assertLessEqual({"single", "heft", "etf", "metis"}, set(methods()))


class BadInput(CommandTest):
    def test_in_the_verb_lists_the_verbs(self):
        self.fails(2, f"found 'plase'; required one of {', '.join(verbs())};", "plase")
        self.fails(2, f"no verb; required one of {', '.join(verbs())};")
        self.fails(2, "subcommand", "generate")

    def test_in_a_flag_is_named(self):
        on = ["place", self.stg, "--machine", "uniform:2", "--method", "heft"]
        for message, *flags in [
            ("--colour", "--colour", "red"),
            ("discipline: found 'lifo'; required one of fifo", "--discipline", "lifo"),
            ("links: found 'fast'; required one of free", "--links", "fast"),
            ("ties: found 'coin'; required one of by_id", "--ties", "coin"),
            ("ties: found 'published'", "--ties", "published", "--discipline", "priority"),
            ("jitter: found -1; required between 0 and 3", "--jitter", "-1"),
            ("--time: found 'soon'; required a duration", "--time", "soon"),
            ("--time", "--time", "1s", "--evaluations", "5"),
            ("--threads", "--threads", "0"),
            ("--seed", "--seed", "-1"),
            ("--seed", "--seed", "99999999999999999999"),
            ("--evaluations", "--evaluations", "-1"),
            ("--pin: found 'x'; required op=device", "--pin", "x"),
            ("no op named 'x'", "--pin", "x=0"),
            ("both are standard output", "-o", "-", "--json"),
        ]:
            self.fails(2, message, *on, *flags)
        self.fails(2, "--machine is required", "place", self.stg)
        self.fails(2, "method: found 'hefd'; required one of single", *on[:-1], "hefd")
        self.fails(2, "method: found ''; required one of single", "compare", self.stg, "-m", "uniform:2", "--methods",
                   "heft,")
        self.fails(2, "graph is required", "info")
        self.fails(2, "--ops", "generate", "random", "--ops", "-1")
        self.fails(2, "generate: degree -1", "generate", "random", "--degree", "-1")

    def test_is_one_line_and_exit_code_2_of_every_verb(self):
        for verb in verbs():
            with self.subTest(verb):
                self.fails(2, "", verb, "--colour", "red")

    def test_in_a_pin_lists_the_devices(self):
        graph = self.directory / "g.json"
        self.ok("generate", "random", "--ops", 9, "-o", graph)
        self.fails(2, "no device 'gpu9'; required an index below 4 or one of gpu0, gpu1, gpu2, gpu3",
                   "place", graph, "-m", "p100x4", "--method", "heft", "--pin", "op0=gpu9")

    def test_in_a_machine_says_what_is_possible(self):
        self.fails(2, "or one of p100x4", "info", self.stg, "--machine", "p100")
        self.fails(2, "required uniform:N", "info", self.stg, "--machine", "uniform:0")
        bad = self.write("m.json", "{}")
        self.fails(2, "no 'format'; required \"doppler-machine\"", "info", self.stg, "--machine", bad)
        graph = self.directory / "g.json"
        self.ok("generate", "random", "--ops", 9, "-o", graph)
        bare = self.write("bare.json", {"format": "doppler-machine", "version": 1, "name": "bare",
                                        "devices": [{"name": "d", "type": "gpu"}]})
        self.fails(2, "has no cost on any device of machine 'bare'", "info", graph, "--machine", bare)

    def test_in_a_graph_is_refused(self):
        for name, content in [("empty", ""), ("garbage", "\x01\x02\x03"), ("truncated.json", '{"format":"doppler-gr'),
                              ("number", "7"), ("truncated.stg", "2\n0 0 0\n1 3 1")]:
            path = self.write(name, content)
            for verb in [["info", path], ["compare", self.stg, path, "-m", "uniform:2"]]:
                self.fails(2, str(path), *verb)
        self.fails(2, "No such file", "info", self.directory / "missing")
        self.fails(2, "is a directory", "info", self.directory)

    def test_in_a_placement_is_refused(self):
        good = {"format": "doppler-placement", "version": 1, "assignment": [0, 0, 0, 0]}
        for message, change in [("has 1 entries; required 4", {"assignment": [0]}),
                                ("required a device below 2", {"assignment": [0, 0, 0, 2]}),
                                ("required the number of a device", {"assignment": [0, 0, 0, -1]}),
                                ("version 9", {"version": 9}),
                                ("required a placement file", {"format": "other"}),
                                ("'priority' has 1 entries", {"priority": [1]})]:
            path = self.write("p.json", {**good, **change})
            self.fails(2, message, "simulate", self.stg, path, "-m", "uniform:2")
        deep = self.write("deep.json", "[" * 1_000_000)
        self.fails(2, "nested more than", "simulate", self.stg, deep, "-m", "uniform:2")

    def test_never_leaves_or_replaces_a_file(self):
        output = self.write("out.json", "precious")
        self.fails(2, "missing", "place", self.directory / "missing", "-m", "uniform:2", "--method", "heft", "-o", output)
        graph = self.directory / "g.json"
        self.ok("generate", "random", "--ops", 9, "-o", graph)
        self.fails(3, "", "place", graph, "-m", self.machine(memory=1), "--method", "heft", "-o", output)
        self.assertEqual(output.read_text(), "precious")
        self.fails(2, "in no directory that exists", "place", self.stg, "-m", "uniform:2", "--method", "heft", "-o",
                   self.directory / "missing" / "p.json")
        self.assertEqual(sorted(p.name for p in self.directory.iterdir()),
                         ["g.json", "machine.json", "out.json", "two.stg"])

    def test_of_a_full_disk_is_noticed(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([DOPPLER, "info", self.stg], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)


class Infeasible(CommandTest):
    def setUp(self):
        super().setUp()
        self.graph = self.directory / "g.json"
        self.ok("generate", "chain-of-blocks", "--ops", 30, "-o", self.graph)

    def test_placement_is_exit_code_3(self):
        self.fails(3, "", "place", self.graph, "-m", self.machine(memory=1), "--method", "heft")

    def test_pins_are_exit_code_3(self):
        self.fails(3, "pinned to devices 0 and 1", "place", self.graph, "-m", "p100x4", "--method", "heft", "--pin",
                   "op0=0", "--pin", "op0=gpu1")

    def test_methods_are_rows_of_a_comparison(self):
        done = run("compare", self.graph, "-m", self.machine(memory=1), "--methods", "single,heft")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stdout.count("infeasible: "), 2, done.stdout)
        done = run("compare", self.graph, "-m", self.machine(memory=1), "--methods", "single,heft", "--json")
        for result in json.loads(done.stdout)["results"]:
            self.assertFalse(result["feasible"])
            self.assertIsNone(result["makespan"])
            self.assertTrue(result["reason"])

    def test_simulation_names_the_op_and_the_device(self):
        placement = self.placed(self.graph, self.machine(), "--method", "heft")
        done = run("simulate", self.graph, placement, "-m", self.machine(memory=1), "--json")
        self.assertEqual(done.returncode, 3, done.stderr)
        result = json.loads(done.stdout)
        self.assertFalse(result["feasible"])
        self.assertEqual(result["overflow"]["capacity"], 1)
        self.assertIn(f"op '{result['overflow']['op']}' needs", done.stderr)


class Results(CommandTest):
    def test_of_info_count_the_graph(self):
        result = json.loads(self.ok("info", self.stg, "--json", "--machine", "uniform:2").stdout)
        self.assertEqual((result["ops"], result["edges"], result["depth"], result["width"]), (4, 4, 3, 2))
        self.assertEqual((result["work"], result["critical_path"], result["unit"]), (7, 4, "graph"))
        self.assertEqual(result["lower_bound"], 4)
        text = self.ok("info", EXAMPLE, "--machine", "p100x4").stdout
        for word in ["parameters", "parallelism", "communication", "lower bound", "matmul"]:
            self.assertIn(word, text)

    def test_of_place_are_proven_and_without_unit_where_the_graph_has_none(self):
        done = self.ok("place", self.stg, "--machine", "uniform:2", "--method", "heft")
        self.assertIn("makespan     4\n", done.stdout)
        self.assertIn("gap          0 %, proven optimal\n", done.stdout)
        self.assertIn("speed-up     1.75 over the best single device (7)\n", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_of_place_in_json_have_the_promised_keys(self):
        result = json.loads(self.ok("place", self.stg, "-m", "uniform:2", "--method", "heft", "--json").stdout)
        for key in ["makespan", "lower_bound", "gap", "feasible", "method", "seconds", "placement"]:
            self.assertIn(key, result)
        self.assertEqual(result["placement"]["format"], "doppler-placement")
        self.assertEqual(len(result["placement"]["assignment"]), 4)
        # What --json shows is a placement file as it is.
        again = self.ok("simulate", self.stg, self.write("p.json", result["placement"]), "-m", "uniform:2", "--json")
        self.assertEqual(json.loads(again.stdout)["makespan"], result["makespan"])

    def test_of_simulate_equal_those_of_place_under_every_rule(self):
        for rules in [[], ["--links", "channels"], ["--discipline", "priority"], ["--discipline", "ordered"],
                      ["--discipline", "random", "--seed", "3"], ["--ties", "published"], ["--bulk-synchronous"],
                      ["--jitter", "0.2", "--seed", "5"]]:
            placement = self.placed(EXAMPLE, "p100x4", "--method", "heft", *rules)
            made = json.loads(placement.read_text())
            result = json.loads(self.ok("simulate", EXAMPLE, placement, "-m", "p100x4", "--json", *rules).stdout)
            self.assertEqual(result["makespan"], made["makespan"], rules)
            self.assertTrue(result["feasible"])

    def test_of_simulate_say_optimal_where_the_bound_is_reached(self):
        # Ops of 0.1, 0.2 and 0.3 in a chain: the bound is their sum, rounded in another order than the simulator's.
        graph = {"format": "doppler-graph", "version": 1,
                 "ops": [{"name": n, "times": {"*": t}} for n, t in [("a", 0.1), ("b", 0.2), ("c", 0.3)]],
                 "tensors": [{"producer": 0, "bytes": 0, "consumers": [1]},
                             {"producer": 1, "bytes": 0, "consumers": [2]}]}
        path = self.write("chain.json", graph)
        placement = self.placed(path, "uniform:2", "--method", "single")
        done = self.ok("simulate", path, placement, "-m", "uniform:2")
        self.assertIn("0 %, proven optimal", done.stdout)
        result = json.loads(self.ok("simulate", path, placement, "-m", "uniform:2", "--json").stdout)
        self.assertTrue(result["optimal"])

    def test_go_by_the_objective_that_is_asked_for_or_the_usual_one(self):
        place = lambda *flags: json.loads(self.ok("place", EXAMPLE, "-m", "p100x4", "--method", "anneal", "--evaluations",
                                                  20000, "--json", *flags).stdout)
        preset = place()  # Presets have a jitter of their own.
        self.assertEqual((preset["objective"], preset["jitter"]), ("expected", 0.05))
        self.assertEqual(place("--jitter", "0")["objective"], "exact")
        self.assertEqual(place("--objective", "exact")["objective"], "exact")
        usual = place("--jitter", "0.2")
        self.assertEqual(usual["objective"], "expected")
        self.assertLess(0, usual["expected_error"])
        self.assertLessEqual(usual["expected_bound"], usual["expected"])
        self.assertLess(usual["expected"], usual["p95"])
        exact = place("--jitter", "0.2", "--objective", "exact")
        # Who goes by exact times finds less of them, and expects more.
        self.assertLess(exact["makespan"], usual["makespan"])
        self.assertLess(usual["expected"], exact["expected"])
        self.assertEqual(place("--jitter", "0.2", "--objective", "p95")["objective"], "p95")
        rows = json.loads(self.ok("compare", EXAMPLE, "-m", "p100x4", "--methods", "heft", "--jitter", "0.2", "--json").stdout)
        self.assertEqual(rows["results"][0]["objective"], "expected")
        for verb in (["place", EXAMPLE], ["compare", EXAMPLE]):
            self.fails(2, "whose times do not vary", *verb, "-m", "p100x4", "--jitter", "0", "--objective", "expected")
            self.fails(2, "--objective", *verb, "-m", "p100x4", "--objective", "best")

    def test_name_the_objective(self):
        place = lambda *flags: self.ok("place", EXAMPLE, "-m", "p100x4", "--method", "heft", *flags).stdout
        self.assertIn("\nobjective    expected (jitter 0.05)\n", place())
        self.assertIn("\nobjective    p95 (jitter 0.2)\n", place("--objective", "p95", "--jitter", "0.2"))
        self.assertIn("\nobjective    exact\n", place("--objective", "exact"))
        self.assertIn(", objective expected (jitter 0.05)\n",
                      self.ok("compare", EXAMPLE, "-m", "p100x4", "--methods", "heft").stdout)
        self.assertIn(", objective exact\n", self.ok("compare", self.stg, "-m", "uniform:2", "--methods", "heft").stdout)

    def test_with_jitter_show_the_mean_beside_the_exact_makespan(self):
        placement = self.placed(EXAMPLE, "p100x4", "--method", "heft")
        exact = json.loads(self.ok("simulate", EXAMPLE, placement, "-m", "p100x4", "--jitter", "0", "--json").stdout)
        self.assertNotIn("expected", exact)
        varied = json.loads(
            self.ok("simulate", EXAMPLE, placement, "-m", "p100x4", "--jitter", "0.2", "--json").stdout)
        self.assertEqual(varied["makespan"], exact["makespan"])
        self.assertGreater(varied["expected"], exact["makespan"])
        self.assertEqual(varied["jitter"], 0.2)

    def test_of_simulate_note_a_placement_made_for_other_rules(self):
        placement = self.placed(self.stg, "uniform:2", "--method", "heft", "--discipline", "ordered")
        done = self.ok("simulate", self.stg, placement, "-m", "uniform:2")
        self.assertIn("was made for --discipline ordered; simulating fifo", done.stderr)
        self.assertEqual(self.ok("simulate", self.stg, placement, "-m", "uniform:2", "--quiet").stderr, "")

    def test_of_simulate_include_a_trace_and_a_picture(self):
        placement = self.placed(EXAMPLE, "p100x4", "--method", "heft")
        trace, dot = self.directory / "trace.json", self.directory / "g.dot"
        self.ok("simulate", EXAMPLE, placement, "-m", "p100x4", "--trace", trace, "--dot", dot)
        slices = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "op"]
        self.assertEqual(len(slices), 260)
        self.assertIn("digraph", dot.read_text())

    def test_of_compare_mark_the_best_and_add_the_strongest_baseline(self):
        done = self.ok("compare", EXAMPLE, "-m", "p100x4", "--methods", "random,round_robin")
        rows = [line for line in done.stdout.splitlines() if "%" in line]
        self.assertEqual(len(rows), 3, done.stdout)
        self.assertEqual(sum(row.startswith("* ") for row in rows), 1, done.stdout)
        self.assertIn("added: strongest cheap baseline", rows[2])

    def test_of_compare_in_json_cover_every_graph_and_method(self):
        other = self.write("other.stg", STG)
        output = self.directory / "out.json"
        done = self.ok("compare", self.stg, other, "-m", "uniform:2", "--methods", "single,heft,etf,metis", "--json",
                       output)
        self.assertEqual(done.stdout.count("lower bound 4"), 2)
        results = json.loads(output.read_text())["results"]
        self.assertEqual([(r["graph"], r["method"]) for r in results],
                         [(str(g), m) for g in (self.stg, other) for m in ("single", "heft", "etf", "metis")])
        for result in results:
            self.assertLessEqual({"makespan", "lower_bound", "gap", "seconds", "feasible"}, result.keys())
            self.assertGreaterEqual(result["makespan"], result["lower_bound"])

    def test_of_compare_run_every_method_by_default(self):
        done = self.ok("compare", self.stg, "-m", "uniform:2", "--time", "100ms", "--json")
        # near_single is `single` wherever that can be.
        self.assertEqual([r["method"] for r in json.loads(done.stdout)["results"]],
                         [method for method in methods() if method != "near_single"])

    def test_of_generate_are_graphs_of_the_asked_size(self):
        for family in ["layered", "random", "series-parallel", "chain-of-blocks"]:
            done = self.ok("generate", family, "--ops", 50, "--seed", 3)
            self.assertEqual(done.stdout, self.ok("generate", family, "--ops", 50, "--seed", 3).stdout)
            self.assertNotEqual(done.stdout, self.ok("generate", family, "--ops", 50, "--seed", 4).stdout)
            result = json.loads(self.ok("info", "-", "--json", input=done.stdout).stdout)
            self.assertEqual(result["ops"], 50)

    def test_respect_pins_by_name_and_index(self):
        placement = json.loads(self.placed(EXAMPLE, "p100x4", "--method", "etf", "--pin", "op0=gpu3", "--pin",
                                           "op1=2").read_text())
        self.assertEqual(placement["assignment"][:2], [3, 2])


class Json(CommandTest):
    def test_flag_before_the_graph_neither_swallows_nor_overwrites_it(self):
        graph = self.directory / "g.json"
        self.ok("generate", "random", "--ops", 5, "-o", graph)
        before = graph.read_bytes()
        self.assertEqual(json.loads(self.ok("info", "--json", graph).stdout)["ops"], 5)
        placement = self.placed(graph, "p100x4", "--method", "heft")
        self.ok("simulate", graph, "--json", placement, "-m", "p100x4")
        json.loads(self.ok("compare", "--json", graph, graph, "-m", "p100x4", "--methods", "heft").stdout)
        self.assertEqual(graph.read_bytes(), before)

    def test_file_is_replaced_and_the_table_still_shown(self):
        output = self.directory / "out.json"
        for _ in range(2):
            self.assertIn("ops", self.ok("info", self.stg, "--json", output).stdout)
            self.assertEqual(json.loads(output.read_text())["ops"], 4)

    def test_is_all_there_is_on_standard_output(self):
        placement = self.placed(self.stg, "uniform:2", "--method", "heft")
        for arguments in [["info", self.stg], ["place", self.stg, "-m", "uniform:2", "--method", "heft"],
                          ["compare", self.stg, "-m", "uniform:2", "--methods", "heft"],
                          ["simulate", self.stg, placement, "-m", "uniform:2"]]:
            done = self.ok(*arguments, "--json")
            json.loads(done.stdout)
            self.assertEqual(done.stderr, "")

    def test_placement_may_be_standard_output(self):
        done = self.ok("place", self.stg, "-m", "uniform:2", "--method", "heft", "-o", "-")
        self.assertEqual(json.loads(done.stdout)["format"], "doppler-placement")


class Reproducible(CommandTest):
    def test_bytes_at_any_number_of_threads(self):
        for method in [m for m in ("random", "critical_path", "metis", "anneal", "auto") if m in methods()]:
            outputs = []
            for threads in (1, 2, 2):
                outputs.append(self.placed(EXAMPLE, "p100x4", "--method", method, "--evaluations", 2000, "--seed", 7,
                                           "--threads", threads).read_bytes())
            self.assertEqual(outputs[0], outputs[1], method)
            self.assertEqual(outputs[1], outputs[2], method)


class Terminal(CommandTest):
    """Standard error is a pseudo-terminal here."""

    def start(self, *arguments):
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        process = subprocess.Popen([DOPPLER, *map(str, arguments)], stdout=subprocess.PIPE, stderr=follower, text=True)
        os.close(follower)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process, leader

    def read_terminal(self, leader):
        text = b""
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:  # Linux: the other end is closed
                return text.decode()
            if not part:
                return text.decode()
            text += part

    def test_shows_progress_and_clears_it(self):
        process, leader = self.start("place", self.stg, "-m", "uniform:2", "--method", "heft")
        text = self.read_terminal(leader)
        self.assertEqual(process.wait(LIMIT), 0)
        self.assertIn("two.stg: heft", text)
        self.assertTrue(text.endswith("\r\x1b[K"), repr(text))

    def test_shows_nothing_when_quiet(self):
        process, leader = self.start("place", self.stg, "-m", "uniform:2", "--method", "heft", "--quiet")
        self.assertEqual(self.read_terminal(leader), "")
        self.assertEqual(process.wait(LIMIT), 0)

    def test_interrupt_keeps_the_best_so_far(self):
        graph, output = self.directory / "g.json", self.directory / "p.json"
        # Wide and irregular enough that nothing proves optimality before the interrupt.
        self.ok("generate", "layered", "--ops", 500, "--seed", 1, "-o", graph)
        for method in [m for m in ("anneal", "exact", "auto") if m in methods()]:
            with self.subTest(method):
                process, leader = self.start("place", graph, "-m", "p100x4", "--method", method, "--time", "60s", "-o",
                                             output)
                select.select([leader], [], [], LIMIT)  # the first progress line: the search has started
                begin = time.monotonic()
                process.send_signal(signal.SIGINT)
                text = self.read_terminal(leader)
                self.assertEqual(process.wait(LIMIT), 130, text)
                self.assertLess(time.monotonic() - begin, 20)  # promptly, though sanitizers and neighbours slow it down
                self.assertIn("interrupted; this is the best so far", text)
                self.ok("simulate", graph, output, "-m", "p100x4")
                output.unlink()


if __name__ == "__main__":
    unittest.main()
