#!/usr/bin/env python3
"""Nothing is lost: signals, streams, names, directories, memory and files, by the real command.

Usage: DOPPLER=path/to/doppler reliability_cli_test.py [unittest arguments]
"""
import json
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import signal
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from attack_lib import policy_file
from command import DOPPLER, LIMIT, CommandCase, run

SANITIZED = bool(os.environ.get("SANITIZED"))  # sanitizers reserve more address space than any limit leaves
OK, BAD_INPUT, INFEASIBLE, OUT_OF_MEMORY, INTERRUPTED = 0, 2, 3, 71, 130
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Two independent tasks of 3 and 4 between zero-time dummies.
STG = "2\n0 0 0\n1 3 1 0\n2 4 1 0\n3 0 2 1 2\n"
# What a terminal would obey: an escape sequence, a line end, NUL, CSI in one character, a right-to-left override.
EVIL = "a\x1b[31m\ndoppler: all is well\x00\u009b31m\u202etxt"
SHOWN = r"a\x1b[31m\ndoppler: all is well\x00\u009b31m\u202etxt"


def with_updates(checkpoint, count):
    """The checkpoint of a training that has made so many updates, as far as it says."""
    magic, header, numbers, training = policy_file.split(checkpoint)
    training = json.dumps({**json.loads(training), "updates": count}).encode()
    return policy_file.join(magic, header, numbers, training)


class ReliabilityCase(CommandCase):
    def write(self, name, content):
        path = self.directory / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def setUp(self):
        super().setUp()
        self.stg = self.write("two.stg", STG)
        self.place = ("place", self.stg, "--machine", "uniform:2", "--method", "heft")

    def start(self, *arguments, **options):
        process = subprocess.Popen([DOPPLER, *map(str, arguments)], stdout=subprocess.PIPE, **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def start_on_terminal(self, *arguments, until=""):
        """Standard error is a terminal, so that a progress line tells that the work has begun, or got so far."""
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        process = self.start(*arguments, stderr=follower)
        os.close(follower)
        text = ""
        while not text or not re.search(until, text):
            self.assertTrue(select.select([leader], [], [], LIMIT)[0], "no progress")
            text += os.read(leader, 4096).decode()
        return process, leader

    def read_terminal(self, leader):
        text = b""
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:  # Linux: the other end is closed
                return text.decode()
            text += part

    def program(self):
        graph, placement = self.directory / "g.json", self.directory / "p.json"
        self.ok("generate", "ffnn", "--batch", 64, "--input", 16, "--hidden", 128, "--output-width", 16, "--parts", 4,
                "-o", graph)
        self.ok("place", graph, "--machine", "cpu2", "--method", "heft", "-o", placement)
        return graph, placement


class ASignal(ReliabilityCase):
    def setUp(self):
        super().setUp()
        self.graph, self.output = self.directory / "layered.json", self.directory / "out.json"
        # Wide and irregular enough that nothing proves optimality before the signal.
        self.ok("generate", "layered", "--ops", 500, "--seed", 1, "-o", self.graph)

    def interrupted(self, number, *arguments, until=""):
        process, leader = self.start_on_terminal(*arguments, until=until)
        process.send_signal(number)
        text = self.read_terminal(leader)
        self.assertEqual(process.wait(LIMIT), INTERRUPTED, (number, text))
        self.assertIn("doppler: interrupted; this is the best so far\r\n", text)

    def test_of_each_kind_keeps_the_best_placement(self):
        for number in STOPS:
            self.interrupted(number, "place", self.graph, "-m", "p100x4", "--method", "anneal", "--time", "60s", "-o",
                             self.output)
            self.ok("simulate", self.graph, self.output, "-m", "p100x4")
            self.output.unlink()

    def test_keeps_the_rows_of_a_comparison(self):
        self.interrupted(signal.SIGTERM, "compare", self.graph, "-m", "p100x4", "--methods", "anneal", "--time", "60s",
                         "--json", self.output)
        self.assertEqual(json.loads(self.output.read_text())["results"][0]["method"], "anneal")

    def test_keeps_a_training(self):
        out = self.directory / "run"
        self.interrupted(signal.SIGHUP, "train", self.graph, "-m", "p100x4", "--time", "600s", "--out", out)
        self.ok("place", self.graph, "-m", "p100x4", "--method", "doppler", "--checkpoint", out)

    def test_keeps_what_was_measured(self):
        graph, placement = self.program()
        emulated = ("--devices", "emulated", "-m", "cpu2", "--time-scale", "100")
        for arguments in (("run", graph, placement, "--repeat", 100000, "--warmup", 0, *emulated),
                          ("run", graph, placement, "--learn", "--runs", 100000, *emulated),
                          ("calibrate", graph, "--repeat", 100000, "-o", self.directory / "m.json", *emulated),
                          ("validate", graph, "--repeat", 100000, "--warmup", 0, *emulated)):
            with self.subTest(arguments[0]):
                # A round of calibrate that is no warm-up.
                self.interrupted(signal.SIGTERM, *arguments, "--json", self.output,
                                 until="round [1-9]" if arguments[0] == "calibrate" else "")
                json.loads(self.output.read_text())

    def test_in_metis_is_no_bug_of_ours(self):
        # METIS catches SIGTERM while it partitions, which is nearly all of the time here.
        self.ok("generate", "layered", "--ops", 20000, "--seed", 1, "-o", self.graph)
        for _ in range(3):
            self.interrupted(signal.SIGTERM, "place", self.graph, "-m", "p100x8", "--method", "metis", "--time", "60s")

    def test_before_there_is_anything_to_keep_is_no_bad_input(self):
        graph, placement = self.program()
        slow = ("--devices", "emulated", "-m", "cpu2", "--time-scale", "1e9")  # no run ever ends
        for arguments in (("run", graph, placement, *slow), ("calibrate", graph, *slow, "-o", self.output),
                          ("validate", graph, *slow), ("info", "-"), ("generate", "layered", "--ops", 5000000)):
            with self.subTest(arguments[0]):
                process = self.start(*arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.addCleanup(process.stdin.close)
                self.addCleanup(process.stderr.close)
                self.wait_until_signals_are_watched(process)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.stderr.read(), "doppler: interrupted; there is nothing to keep yet\n")
                self.assertEqual(process.wait(LIMIT), INTERRUPTED)
        self.assertFalse(self.output.exists())

    def wait_until_signals_are_watched(self, process):
        mask = 1 << (signal.SIGTERM - 1)
        while True:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            blocked = next(line for line in status.splitlines() if line.startswith("SigBlk"))
            if int(blocked.split()[1], 16) & mask:
                return
            self.assertIsNone(process.poll())

    def test_the_second_time_ends_at_once(self):
        process, leader = self.start_on_terminal("place", self.graph, "-m", "p100x4", "--method", "anneal", "--time", "60s")
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        self.assertIn(process.wait(LIMIT), (-signal.SIGINT, -signal.SIGTERM))

    def test_that_nohup_ignores_stays_ignored(self):
        def nohup():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = self.start("info", "-", stdin=subprocess.PIPE, preexec_fn=nohup)
        self.wait_until_signals_are_watched(process)
        process.send_signal(signal.SIGHUP)
        process.stdin.write(STG.encode())
        process.stdin.close()
        self.assertEqual(process.wait(LIMIT), OK)


class AStream(ReliabilityCase):
    def shell(self, redirection, *arguments):
        words = " ".join(f"'{word}'" for word in (DOPPLER, *arguments))
        return subprocess.run(f"{words} {redirection}", shell=True, capture_output=True, text=True, timeout=LIMIT)

    def test_for_errors_that_cannot_be_written_costs_nothing(self):
        output = self.directory / "p.json"
        rules = self.directory / "q.json"
        self.ok(*self.place, "--discipline", "ordered", "-o", rules)
        for redirection in ("2>/dev/full", "2>&-"):
            self.assertEqual(self.shell(redirection, *self.place, "-o", output).returncode, OK)
            self.ok("simulate", self.stg, output, "-m", "uniform:2")
            # This one has a note to tell, the next an error.
            self.assertEqual(self.shell(redirection, "simulate", self.stg, rules, "-m", "uniform:2").returncode, OK)
            self.assertEqual(self.shell(redirection, "info", self.directory / "missing").returncode, BAD_INPUT)
            output.unlink()

    def test_for_results_that_is_closed_never_becomes_a_file(self):
        for redirection in (">&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full", "| true"):
            with self.subTest(redirection):
                output, rows = self.directory / "p.json", self.directory / "rows.json"
                done = self.shell(redirection, *self.place, "-o", output)
                self.assertEqual(json.loads(output.read_text())["format"], "doppler-placement")
                compared = self.shell(redirection, "compare", self.stg, self.stg, "-m", "uniform:2", "--methods", "heft",
                                      f"--json={rows}")
                self.assertEqual(len(json.loads(rows.read_text())["results"]), 2)
                if redirection != "| true":  # whose exit code it is
                    self.assertEqual((done.returncode, compared.returncode), (BAD_INPUT, BAD_INPUT))
                output.unlink()
                rows.unlink()

    def test_for_results_that_is_closed_never_becomes_the_metrics(self):
        out = self.directory / "run"
        done = self.shell("<&- >&-", "train", self.stg, "-m", "uniform:2", "--episodes", "32", "--out", out)
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("standard output: cannot write", done.stderr)
        for line in (out / "metrics.jsonl").read_text().splitlines():
            self.assertIn("update", json.loads(line))

    def test_for_help_that_cannot_be_written_is_noticed(self):
        self.assertEqual(self.shell(">/dev/full", "--help").returncode, BAD_INPUT)

    def test_that_is_closed_for_input_is_bad_input(self):
        self.assertEqual(self.shell("<&-", "info", "-").returncode, BAD_INPUT)

    def test_that_is_a_file_of_limited_size_is_bad_input_and_leaves_nothing(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = subprocess.run([DOPPLER, "generate", "layered", "-o", self.directory / "g.json"], capture_output=True,
                              preexec_fn=limit, timeout=LIMIT)
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertEqual(os.listdir(self.directory), ["two.stg"])


class AName(ReliabilityCase):
    def graph(self, time):
        return self.write("evil.json", {"format": "doppler-graph", "version": 1, "title": EVIL, "ops": [
            {"name": EVIL, "kind": EVIL, "times": {"*": time}}, {"name": "b" * 100000, "kind": "k", "times": {"*": 1}}],
            "tensors": []})

    def machine(self):
        return self.write("machine.json", {"format": "doppler-machine", "version": 1, "name": EVIL,
                                           "devices": [{"name": EVIL, "type": "cpu"}, {"name": "b", "type": "cpu"}]})

    def assert_harmless(self, text):
        for letter in text:
            self.assertTrue(letter == "\n" or letter.isprintable() or letter == "\ufffd", repr(letter))
        self.assertNotIn("\ndoppler: all is well", text)
        self.assertLess(max(map(len, text.splitlines()), default=0), 5000)

    def test_in_an_error_is_shown_and_not_obeyed(self):
        for time, machine in ((-1, "uniform:2"), (1, "uniform:2")):
            done = run("place", self.graph(time), "-m", machine, "--method", "heft", "--pin", "b" * 5000 + "=9")
            self.assertEqual(done.returncode, BAD_INPUT)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assert_harmless(done.stderr)
        self.assertIn(SHOWN, run("info", self.graph(-1)).stderr)

    def test_of_a_file_is_shown_and_not_obeyed(self):
        done = run("info", self.directory / EVIL.replace("\x00", ""))
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assert_harmless(done.stderr)
        graph = self.directory / "a\nb\x1b[2J.stg"
        graph.write_text(STG)
        self.assert_harmless(self.ok("info", graph).stdout)
        done = subprocess.run([os.fsencode(DOPPLER), b"info", b"\xff\xfe"], capture_output=True, timeout=LIMIT)
        self.assertIn(rb"\xff\xfe: cannot open", done.stderr)

    def test_in_a_report_is_shown_and_not_obeyed(self):
        graph, placement = self.graph(1), self.directory / "p.json"
        machine = self.machine()
        for arguments in (("info", graph, "-m", machine), ("place", graph, "-m", machine, "--method", "heft", "-o", placement),
                          ("simulate", graph, placement, "-m", machine),
                          ("compare", graph, "-m", machine, "--methods", "heft")):
            with self.subTest(arguments[0]):
                done = self.ok(*arguments)
                self.assert_harmless(done.stdout)
                self.assert_harmless(done.stderr)
                self.assertIn(SHOWN, done.stdout)

    def test_is_exact_in_files_and_json(self):
        facts = json.loads(self.ok("info", self.graph(1), "-m", self.machine(), "--json").stdout)
        self.assertIn(EVIL, [kind["kind"] for kind in facts["kinds"]])
        result = json.loads(self.ok("place", self.graph(1), "-m", self.machine(), "--method", "heft", "--json").stdout)
        self.assertEqual((result["machine"], result["devices"][0]["name"]), (EVIL, EVIL))


class ADirectory(ReliabilityCase):
    def setUp(self):
        super().setUp()
        self.out = self.directory / "run"
        self.graph = self.directory / "graph.json"
        self.ok("generate", "layered", "--ops", 40, "--width", 5, "--seed", 1, "-o", self.graph)
        self.train = ("train", self.graph, "-m", "p100x4", "--episodes", 640, "--seed", 3, "--out", self.out)

    def test_belongs_to_one_training_which_is_named(self):
        process, _ = self.start_on_terminal("train", self.graph, "-m", "p100x4", "--time", "600s", "--out", self.out)
        for resume in ((), ("--resume",)):
            done = run(*self.train, *resume)
            self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
            self.assertRegex(done.stderr, rf"in use by process {process.pid} on \S+ since \d{{4}}-.* UTC;")
        process.kill()
        process.wait(LIMIT)
        # The lock of a process that is dead holds nobody up.
        self.ok("train", self.graph, "-m", "p100x4", "--time", "100ms", "--out", self.out, "--resume")

    def test_of_a_training_that_was_killed_at_the_start_resumes_to_the_same_bytes(self):
        self.ok(*self.train)
        killed = self.directory / "killed"
        arguments = (*self.train[:-1], killed)
        # The training takes a tenth of a second: on a busy machine it may have ended before it can be killed.
        for _ in range(20):
            shutil.rmtree(killed, ignore_errors=True)
            process = self.start(*arguments, "--checkpoint-every", "1000s")
            while not (killed / "checkpoint").exists() and process.poll() is None:
                pass
            checkpoint = (killed / "checkpoint").read_bytes()
            process.kill()
            if process.wait(LIMIT) != 0:
                break
        header = json.loads(checkpoint.split(b"\n")[1])
        self.assertEqual(json.loads(checkpoint[-header["training_bytes"]:])["updates"], 0)
        self.ok(*arguments, "--resume")
        self.assertEqual((killed / "policy").read_bytes(), (self.out / "policy").read_bytes())

    # What a training has made when it is killed, one thing after the other; the last two while it writes a file.
    LEFT_BY_A_START = (("",), ("placements/",), ("placements/", "lock"), ("placements/", "lock", "metrics.jsonl"),
                       ("placements/", "lock", "metrics.jsonl", "measurements.jsonl"),
                       ("placements/", "lock", "metrics.jsonl", ".doppler.0123456789abcdef.tmp"),
                       ("placements/", "lock", "metrics.jsonl", "placements/.doppler.0123456789abcdef.tmp"))

    def make(self, name, files):
        directory = self.directory / name
        directory.mkdir()
        for file in files:
            if file.endswith("/"):
                (directory / file).mkdir()
            elif file:
                (directory / file).touch()
        return directory

    def test_of_a_training_that_was_killed_before_its_first_checkpoint_begins_or_resumes_from_the_start(self):
        self.ok(*self.train)
        for number, files in enumerate(self.LEFT_BY_A_START):
            for resume in ((), ("--resume",)):
                with self.subTest(files=files, resume=resume):
                    killed = self.make(f"killed{number}{len(resume)}", files)
                    done = self.ok(*self.train[:-1], killed, *resume)
                    self.assertEqual((killed / "policy").read_bytes(), (self.out / "policy").read_bytes())
                    note = f"doppler: note: {killed}: no checkpoint yet; starting from the beginning\n"
                    self.assertEqual(done.stderr, note if resume else "")

    def test_that_is_none_of_a_training_is_not_resumed_and_stays_as_it_is(self):
        self.fails("found no checkpoint (No such file or directory); required the directory of a training",
                   *self.train, "--resume")
        self.assertFalse(self.out.exists())
        for number, (file, content) in enumerate((("notes.txt", ""), ("policy", "x"), ("metrics.jsonl", '{"update": 0}\n'),
                                                  ("measurements.jsonl", "{}\n"))):
            foreign = self.make(f"foreign{number}", ())
            (foreign / file).write_text(content)
            self.fails(f"found no checkpoint, but '{file}'; required the directory of a training", *self.train[:-1],
                       foreign, "--resume")
            self.assertEqual([path.name for path in foreign.iterdir()], [file])

    def test_of_a_training_that_has_learned_nothing_may_be_begun_again(self):
        once = ("train", self.graph, "-m", "p100x4", "--episodes", 16, "--seed", 3, "--out", self.out)
        self.ok(*self.train)
        first = (self.out / "policy").read_bytes()
        for path in (self.out / "policy", *(self.out / "placements").iterdir()):
            path.unlink()
        # An update was made, so that it may not.
        self.fails("holds a training; required --resume", *once)
        checkpoint = self.out / "checkpoint"
        checkpoint.write_bytes(with_updates(checkpoint.read_bytes(), 0))
        self.ok(*self.train)
        self.assertEqual((self.out / "policy").read_bytes(), first)
        # Runs of the system are worth something, even before the first update.
        checkpoint.write_bytes(with_updates(checkpoint.read_bytes(), 0))
        (self.out / "policy").unlink()
        (self.out / "measurements.jsonl").write_text('{"seconds": 1, "assignment": [0]}\n')
        self.fails("holds a training; required --resume", *once)

    def test_whose_metrics_or_measurements_are_gone_is_resumed_nevertheless(self):
        self.ok(*self.train)
        policy = (self.out / "policy").read_bytes()
        (self.out / "metrics.jsonl").unlink()
        shutil.rmtree(self.out / "placements")
        self.ok(*self.train, "--resume")
        self.assertEqual((self.out / "policy").read_bytes(), policy)
        self.assertEqual(len(list((self.out / "placements").iterdir())), 1)

    def test_with_a_malformed_metric_names_its_line(self):
        self.ok(*self.train)
        metrics = self.out / "metrics.jsonl"
        good = metrics.read_text()
        for bad in ("nonsense", "[]", '{"update": "one"}', '{"update": -1}', "{}"):
            metrics.write_text(good + bad + "\n" + good)
            self.fails(f"metrics.jsonl: line {good.count(chr(10)) + 1}: found '{bad}'; required", *self.train, "--resume")
        metrics.write_text(good + '{"update": 3')  # what a kill leaves
        self.ok(*self.train, "--resume")
        self.assertEqual(metrics.read_text(), good)

    def test_of_placements_has_a_file_for_each_graph(self):
        for name in ("a b.json", "a_b.json"):
            (self.directory / name).write_bytes(self.graph.read_bytes())
        self.fails("required graphs of different names", "train", self.directory / "a b.json",
                   self.directory / "a_b.json", "-m", "p100x4", "--episodes", 16, "--out", self.out)

    def test_of_results_is_refused_before_the_run_for_names_that_are_none_of_files(self):
        graph, placement = self.program()
        assignment = json.loads(placement.read_text())["assignment"]  # of any graph with as many ops
        placement.write_text(json.dumps({"format": "doppler-placement", "version": 1, "assignment": assignment}))
        content = graph.read_text()
        program = json.loads(content)["program"]
        name = program["expressions"][program["outputs"][0]]["name"]
        self.write("g.json", content.replace(f'"{name}', '"..\\/..\\/pwned'))
        self.ok("run", graph, placement, "-m", "cpu2", "--repeat", 1, "--output", self.out, "-q")
        self.assertTrue(all(path.name.startswith("..%2F..%2Fpwned") for path in self.out.iterdir()))
        shutil.rmtree(self.out)
        for bad in ("a\\u0000b", "x" * 252):
            self.write("g.json", content.replace(f'"{name}', f'"{bad}'))
            self.fails("required the name of a file", "run", graph, placement, "-m", "cpu2", "--output", self.out)
            self.assertFalse(self.out.exists())


@unittest.skipIf(SANITIZED, "a sanitizer needs more address space than there is")
class Memory(ReliabilityCase):
    def limited(self, megabytes, *arguments):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        return subprocess.run([DOPPLER, *map(str, arguments)], capture_output=True, text=True, preexec_fn=limit, timeout=20)

    def test_that_does_not_suffice_is_said_with_needed_and_limit(self):
        graph = self.directory / "g.json"
        self.ok("generate", "layered", "--ops", 100000, "--seed", 1, "-o", graph)
        done = self.limited(70, "place", graph, "-m", "p100x4", "--method", "heft")
        self.assertEqual(done.returncode, OUT_OF_MEMORY, done.stderr)
        self.assertRegex(done.stderr, r"^doppler: out of memory: needed about [\d.]+ .?i?B, limit 70 MiB\n$")

    def test_of_the_engine_ends_the_run_at_once(self):
        graph, placement = self.program()
        codes = set()
        for megabytes in [*range(60, 300, 25), *range(300, 460, 5)]:  # closely where oneDNN is loaded
            done = self.limited(megabytes, "run", graph, placement, "-m", "cpu2", "--repeat", 1)
            self.assertIn(done.returncode, (OK, OUT_OF_MEMORY), (megabytes, done.stderr))
            codes.add(done.returncode)
        self.assertEqual(codes, {OK, OUT_OF_MEMORY})

    def test_is_not_spent_on_a_blas_by_verbs_that_compute_nothing(self):
        self.assertEqual(self.limited(64, "info", self.stg).returncode, OK)
        loaded = subprocess.run(["ldd", DOPPLER], capture_output=True, text=True, timeout=LIMIT).stdout
        for library in ("openblas", "dnnl", "gomp"):
            self.assertNotIn(library, loaded)


class AFile(ReliabilityCase):
    def test_that_is_an_input_is_not_overwritten(self):
        link, hard = self.directory / "link", self.directory / "hard"
        link.symlink_to(self.stg)
        os.link(self.stg, hard)
        placement = self.directory / "p.json"
        self.ok(*self.place, "-o", placement)
        for path in (self.stg, link, hard):
            self.fails("which is the input", *self.place, "-o", path)
            self.fails("which is the input", *self.place, f"--json={path}")
            self.fails("which is the input", "info", self.stg, "--dot", path)
            self.fails("which is the input", "compare", self.stg, "-m", "uniform:2", f"--json={path}")
            self.fails("which is the input", "simulate", self.stg, placement, "-m", "uniform:2", "--trace", path)
        with open(self.stg) as content:
            done = subprocess.run([DOPPLER, "place", "-", "-m", "uniform:2", "--method", "heft", "-o", self.stg], stdin=content,
                                  capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, BAD_INPUT)
        program = self.write("x.ein", "input x[4]\ny[i] = x[i]\noutput y\n")
        self.fails("which is the input", "lower", program, "-o", program)
        self.assertEqual(self.stg.read_text(), STG)

    def test_that_is_new_has_no_other_name_while_it_is_written(self):
        process = self.start("generate", "layered", "--ops", 100000, "-o", self.directory / "new.json")
        seen = set()
        while process.poll() is None:
            seen |= set(os.listdir(self.directory))
        self.assertEqual(process.returncode, OK)
        self.assertEqual([name for name in seen if name.endswith(".tmp")], [])

    def test_cannot_be_two_outputs(self):
        both = self.directory / "both.json"
        self.fails("-o and --json: both are", *self.place, "-o", both, f"--json={both}")
        self.fails("-o and --json: both are", *self.place, "-o", both, f"--json={self.directory}/./both.json")
        self.assertFalse(both.exists())
        self.ok(*self.place, "-o", "/dev/null", "--json=/dev/null")

    def test_behind_a_link_is_replaced_and_the_link_stays(self):
        real, link, dangling = self.directory / "real.json", self.directory / "link", self.directory / "dangling"
        real.write_text("old")
        link.symlink_to("real.json")
        dangling.symlink_to("new.json")
        for path in (link, dangling):
            self.ok(*self.place, "-o", path)
            self.assertTrue(path.is_symlink())
            self.assertEqual(json.loads(path.read_text())["format"], "doppler-placement")
        self.assertFalse(real.is_symlink())

    def test_has_the_mode_of_the_file_that_it_replaces_or_that_of_the_umask(self):
        output = self.directory / "p.json"
        for umask in (0o022, 0o077):
            subprocess.run([DOPPLER, *map(str, self.place), "-o", output], check=True, capture_output=True,
                           preexec_fn=lambda: os.umask(umask), timeout=LIMIT)
            self.assertEqual(stat.S_IMODE(output.stat().st_mode), 0o666 & ~umask)
            output.unlink()
        output.write_text("old")
        output.chmod(0o640)
        self.ok(*self.place, "-o", output)
        self.assertEqual(stat.S_IMODE(output.stat().st_mode), 0o640)

    def test_that_is_a_descriptor_is_written_in_place(self):
        # A link of our own that is what /dev/stdout is: a command that replaced it would do so for the whole box.
        log, stdout = self.directory / "log", self.directory / "stdout"
        stdout.symlink_to("/proc/self/fd/1")
        log.write_text("before\n")
        with open(log, "a") as end:
            subprocess.run([DOPPLER, *map(str, self.place), "-q", "-o", stdout], stdout=end, check=True, timeout=LIMIT)
        self.assertTrue(log.read_text().startswith("before\n{"))
        self.assertTrue(stdout.is_symlink())

    def test_may_be_a_pipe_that_a_shell_names(self):
        # As >(command) does: /dev/fd/N is a link to "pipe:[…]", which is no path.
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        subprocess.run([DOPPLER, *map(str, self.place), "-q", "-o", f"/dev/fd/{writing}"], pass_fds=[writing], check=True,
                       stdout=subprocess.DEVNULL, timeout=LIMIT)
        os.close(writing)
        self.assertEqual(json.loads(os.read(reading, 1 << 16))["format"], "doppler-placement")

    def test_with_the_longest_name_can_be_written(self):
        self.ok(*self.place, "-o", self.directory / ("n" * 255))


class AFlag(ReliabilityCase):
    def test_is_no_value_of_the_flag_before_it(self):
        self.fails("--train: found '-o', a flag; required a value", "generate", "ffnn", "--train", "-o", self.directory / "x")
        self.fails("--time: found '--quiet', a flag", "place", self.stg, "-m", "uniform:2", "--time", "--quiet")

    def test_for_json_is_called_as_it_was_written(self):
        done = run("info", "g.json", "--json", "--json")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("--json: ", done.stderr)
        self.assertNotIn("--json=-", done.stderr)


if __name__ == "__main__":
    unittest.main()
