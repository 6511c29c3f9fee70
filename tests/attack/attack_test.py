#!/usr/bin/env python3
"""The parts of tools/attack: mutators, verdicts, minimisation, faults. Usage: attack_test.py"""
import json
import pathlib
import random
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from attack_lib import json_file, minimise, policy_file, process, protobuf_file, values, verdict, words_file

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
GRAPH = (DATA / "good/native_small.json").read_bytes()
MODEL = (DATA / "onnx/conv.onnx").read_bytes()
POLICY = (DATA.parents[1] / "models/doppler.policy").read_bytes()
TRIALS = 200


def outcome(code=0, stdout=b"", stderr=b"", **others):
    return process.Outcome(code, stdout, stderr, 0.0, **others)


def whats(complaints):
    return [what for what, _ in complaints]


class Mutators(unittest.TestCase):
    def test_change_almost_every_file_and_the_same_seed_changes_it_alike(self):
        for mutate, content in ((json_file.mutate, GRAPH), (words_file.mutate, b"1 2\n3 4\n"),
                                (protobuf_file.mutate, MODEL), (policy_file.mutate, POLICY), (values.damaged, GRAPH)):
            with self.subTest(mutate.__module__):
                # FNV-1a of a policy takes Python a hundredth of a second, so that it gets fewer trials.
                seeds = range(10 if content is POLICY else TRIALS)
                changed = [mutate(random.Random(seed), content) for seed in seeds]
                self.assertEqual(changed[:10], [mutate(random.Random(seed), content) for seed in range(10)])
                self.assertGreater(sum(each != content for each in changed), 0.7 * len(changed))

    def test_take_empty_and_foreign_content(self):
        for content in (b"", b"\xff\x00garbage", b"{", b"7"):
            for seed in range(50):
                for mutate in (json_file.mutate, words_file.mutate, protobuf_file.mutate, values.damaged):
                    self.assertIsInstance(mutate(random.Random(seed), content), bytes)

    def test_of_json_mostly_stay_json_and_keep_repeated_keys(self):
        changed = [json_file.mutate(random.Random(seed), GRAPH) for seed in range(TRIALS)]
        self.assertGreater(sum(parses(each) for each in changed), TRIALS // 4)
        tree = json_file.parse(b'{"a":1,"a":2.50,"b":[true,null,"\\u001b"]}')
        self.assertEqual(json_file.serialise(tree), b'{"a":1,"a":2.50,"b":[true,null,"\\u001b"]}')

    def test_of_protobuf_keep_lengths_right(self):
        self.assertEqual(protobuf_file.serialise(protobuf_file.parse(MODEL)), MODEL)
        readable = 0
        for seed in range(TRIALS):
            try:
                protobuf_file.parse(protobuf_file.mutate(random.Random(seed), MODEL))
                readable += 1
            except ValueError:
                pass
        self.assertGreater(readable, TRIALS // 2)

    def test_of_policies_repair_the_checksum(self):
        parts = policy_file.split(POLICY)
        self.assertEqual(json.loads(parts[1])["checksum"], policy_file.checksum(parts[2] + parts[3]))
        # The checksum of nothing is FNV's offset basis, that of "a" is in the authors' list of test vectors.
        self.assertEqual(policy_file.checksum(b""), "cbf29ce484222325")
        self.assertEqual(policy_file.checksum(b"a"), "af63dc4c8601ec8c")
        magic, header, numbers, training = policy_file.split(policy_file.join(parts[0], parts[1], b"1234", b"{}"))
        self.assertEqual((numbers, training), (b"1234", b"{}"))
        self.assertEqual(json.loads(header)["checksum"], policy_file.checksum(b"1234{}"))


def parses(content):
    try:
        json_file.parse(content)
        return True
    except (ValueError, RecursionError):
        return False


class Verdicts(unittest.TestCase):
    CODES = {0, 2, 3, 70}

    def test_read_the_codes_from_the_page(self):
        page = "# x\n## Exit codes\n0 ok · 2 bad · 3 no · 70 a bug · 75 memory. Within 99 lines.\n\n## next\n5 no\n"
        self.assertEqual(verdict.documented_codes(page), {0, 2, 3, 70, 75})
        with self.assertRaises(ValueError):
            verdict.documented_codes("## Exit codes\nnone\n")

    def test_find_crashes_hangs_bugs_and_strange_codes(self):
        for found, result in (("crash", outcome(-11)), ("bug", outcome(70)), ("exit code", outcome(134)),
                              ("hang", outcome(-9, hung=True)), ("crash", outcome(1, stderr=b"x: runtime error: y"))):
            self.assertEqual(whats(verdict.code_complaints(result, self.CODES)), [found])
        self.assertEqual(verdict.code_complaints(outcome(-9), self.CODES, deaths=(9,)), [])
        self.assertEqual(verdict.code_complaints(outcome(3), self.CODES), [])

    def test_want_one_clean_line_of_error(self):
        self.assertEqual(verdict.stderr_complaints(outcome(2, stderr=b"doppler: x: found; required\n"), True), [])
        for found, text in (("several lines", b"doppler: a\nb\n"), ("several lines", b"doppler: a\ndoppler: b\n"),
                            ("raw text", b"doppler: \x1b[31m\n"), ("raw text", "doppler: \u202e\n".encode()),
                            ("raw text", b"doppler: \xff\n"), ("several lines", b"doppler: not ended"), ("silent", b""),
                            ("long line", b"doppler: " + b"x" * 10_000 + b"\n")):
            self.assertIn(found, whats(verdict.stderr_complaints(outcome(2, stderr=text), False)), text[:40])
        warning = b"doppler: warning: a\ndoppler: b: found; required\n"
        self.assertEqual(verdict.stderr_complaints(outcome(2, stderr=warning), False), [])
        noisy = outcome(0, stderr=b"doppler: note: a\n")
        self.assertEqual(whats(verdict.stderr_complaints(noisy, True)), ["wrong stream"])

    def test_want_strict_json_on_standard_output_and_nothing_beside_an_error(self):
        self.assertEqual(verdict.stdout_complaints(outcome(0, b'{"a": 1}'), True), [])
        for text in (b"", b"{", b'{"a": NaN}', b'{"a": "\xff"}', b"{}{}"):
            self.assertEqual(whats(verdict.stdout_complaints(outcome(0, text), True)), ["json"])
        self.assertEqual(whats(verdict.stdout_complaints(outcome(2, b"report"), False)), ["wrong stream"])
        self.assertEqual(whats(verdict.stdout_complaints(outcome(0, b"a\x07"), False)), ["raw text"])


class Minimisation(unittest.TestCase):
    def test_leaves_what_matters(self):
        content = json.dumps({"a": [1, 2, 3], "bad": {"x": -1, "y": 2}, "c": "text"}).encode()
        smallest = minimise.minimise(content, lambda each: b'"x":-1' in each.replace(b" ", b""))
        self.assertEqual(smallest.replace(b" ", b""), b'"x":-1')
        self.assertEqual(minimise.minimise(b"aaaaXaaaaY", lambda each: b"X" in each and b"Y" in each), b"XY")


class Processes(unittest.TestCase):
    def run_shell(self, script, **how):
        with tempfile.TemporaryDirectory() as directory:
            return process.execute("/bin/sh", process.Invocation(["-c", script], **how), directory)

    def test_have_closed_and_full_streams(self):
        self.assertEqual(self.run_shell("echo a; echo b >&2").stdout, b"a\n")
        self.assertNotEqual(self.run_shell("echo a", closed=(1,)).code, 0)
        self.assertNotEqual(self.run_shell("echo a", full=(1,)).code, 0)
        self.assertEqual(self.run_shell("test ! -e /proc/self/fd/2", closed=(2,)).code, 0)

    def test_have_limits(self):
        self.assertEqual(self.run_shell("ulimit -n", limits={"NOFILE": 12}).stdout, b"12\n")
        short = self.run_shell("head -c 5000 /dev/zero > file; wc -c < file", limits={"FSIZE": 1024})
        self.assertEqual(short.stdout.strip(), b"1024")

    def test_get_their_signal_once_they_have_a_handler(self):
        done = self.run_shell("trap 'exit 5' INT; while :; do :; done", signal=int(signal.SIGINT))
        self.assertEqual((done.code, done.signalled), (5, True))

    def test_that_hang_are_ended(self):
        done = self.run_shell("while :; do :; done", timeout=0.05)
        self.assertTrue(done.hung)
        self.assertEqual(done.code, -signal.SIGKILL)

    def test_are_shown_as_a_line_of_shell(self):
        faulty = process.Invocation(["place", "a b"], closed=(2,), full=(1,), limits={"AS": 4096})
        self.assertEqual(faulty.shell("doppler"), "(ulimit -v 4; doppler place 'a b' 2>&- 1>/dev/full)")


if __name__ == "__main__":
    unittest.main()
