"""Runs every command of README.md and docs, in order, from where a reader would be: the root of a clone.

  DOPPLER=path/to/doppler docs_test.py [-v] [Documents.test_…]

A command is a line that begins with `$ ` or with the name of a program, in a block without a language. Those that a test
cannot run are in CANNOT, each with its reason; those that take long are shortened by SHORTER, which changes the text of
the command and nothing else. Output that is shown below a command and does not depend on the clock is compared.
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 300  # seconds for one command; sanitizer builds share two cores
PROGRAMS = r"(\$ |doppler |make\b|cmake |bench/|build/|tools/|apt )"

CANNOT = [
    (r"^make\b", "it builds: `make test` is what runs this test, `make demo` is built by hand"),
    (r"^cmake |--devices cuda", "it needs a GPU and a libtorch with CUDA"),
    (r"^(bench/|build/release/)", "a benchmark takes minutes, and is built by `make bench`"),
    (r"^tools/attack", "it takes an hour; tests/attack runs it briefly"),
    (r"^doppler watch", "it serves until somebody stops it; tests/app and web/test do"),
    (r"^apt ", "it installs packages"),
]
# Pages that show no block of commands.
WITHOUT_COMMANDS = {f"{name}.md" for name in ("faq", "formats", "glossary", "json", "machines", "objectives",
                                              "profiles", "reliability", "simulator")}
SHORTER = [
    (r"--time \d+(s|m)", "--time 300ms"),
    (r"--train \d+s", "--train 300ms"),
    (r"--ops 100000\b", "--ops 2000"),
    (r"--runs \d+", "--runs 60"),
    (r"--drift 0=2@100", "--drift 0=2@10"),
    (r"--size (2048|4096|1024)\b", "--size 256"),
    (r"--size 10000\b", "--size 2000"),
    (r"--batch (1024|8192)\b", "--batch 128"),
    (r"--hidden (2048|16384)\b", "--hidden 256"),
    (r"--repeat \d+", "--repeat 1"),
    (r"chain.json ffnn.json block.json --devices emulated", "chain.json --devices emulated"),
    (r"--methods heft,anneal,doppler,hsdag\+,placeto,gdp,rnn", "--methods heft,gdp"),
    (r"^(doppler train .*--devices emulated (?!.*--runs).*)$", r"\1 --runs 60"),
    (r"^(doppler (place|compare) (?!.*--(time|evaluations|method|methods|train)\b).*)$", r"\1 --time 300ms"),
    (r"^(doppler run (?!.*--(repeat|learn)\b).*)$", r"\1 --repeat 1 --warmup 0"),
    (r"^(doppler calibrate (?!.*--repeat\b).*)$", r"\1 --repeat 1"),
    (r"^(doppler calibrate (?!.*--placements\b).*)$", r"\1 --placements 2"),
    (r"^(doppler validate (?!.*--repeat\b).*)$", r"\1 --repeat 1"),
    (r"^(doppler validate .*)$", r"\1 --placements 6"),
    (r"^(doppler train (?!.*--time\b).*)$", r"\1 --time 500ms"),
]
# Searches that end by the clock, and runs on this box, give other numbers every time.
COMPARED = r"^doppler (info|explain|simulate|why|diff|help)\b|--evaluations|--method (heft|single)\b"
CLOCK = re.compile(r"\d+(\.\d+)? s, (?=\d+ evaluations)")


def commands(path):
    """(command, output lines below it), continued lines joined and comments cut off."""
    found = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.M | re.S):
        if language:
            continue
        prompts = re.search(r"^\$ ", block, re.M)
        for line in re.sub(r" *\\\n *", " ", block).splitlines():
            if line.startswith("$ ") or (not prompts and re.match(PROGRAMS, line)):
                found.append((re.sub(r"\s+#.*$", "", line.removeprefix("$ ")), []))
            elif found and prompts:
                found[-1][1].append(line)
    return found


def shortened(command):
    for pattern, replacement in SHORTER:
        command = re.sub(pattern, replacement, command)
    return command


class Documents(unittest.TestCase):
    def run_all(self, path):
        ran = 0
        other = set()  # files that a shortened command wrote: what is made of them differs from what is shown
        with tempfile.TemporaryDirectory() as directory:
            clone = pathlib.Path(directory) / "clone"
            (clone / "bin").mkdir(parents=True)
            (clone / "bin" / "doppler").symlink_to(os.path.abspath(os.environ["DOPPLER"]))
            (clone / "examples").symlink_to(ROOT / "examples")
            environment = {**os.environ, "PATH": f"{clone / 'bin'}:{os.environ['PATH']}"}
            for command, shown in commands(path):
                if any(re.search(pattern, command) for pattern, _ in CANNOT):
                    continue
                run = shortened(command)
                done = subprocess.run(run, shell=True, cwd=clone, env=environment, capture_output=True, text=True,
                                      timeout=LIMIT)
                self.assertEqual(done.returncode, 0, (path.name, run, done.stdout, done.stderr))
                ran += 1
                if run != command or any(file in command.split() for file in other):
                    other.update(re.findall(r"(?:-o|--output|--json|--out) (\S+)", command))
                elif re.search(COMPARED, command):
                    self.assert_shown(path, command, shown, done.stdout)
        return ran

    def assert_shown(self, path, command, shown, output):
        """Every line that is shown is there, in order; a document may leave lines out."""
        lines = iter(CLOCK.sub("", line).rstrip() for line in output.splitlines())
        for line in shown:
            wanted = CLOCK.sub("", line).rstrip()
            if wanted.strip() in ("", "…", "..."):
                continue
            self.assertTrue(any(found == wanted for found in lines), (path.name, command, wanted, output))


def add_test(path):
    def test(self):
        self.assertGreater(self.run_all(path), 0 if path.name not in WITHOUT_COMMANDS else -1, path)
    setattr(Documents, f"test_{path.stem.lower()}_runs_as_written", test)


for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
    add_test(document)


if __name__ == "__main__":
    unittest.main()
