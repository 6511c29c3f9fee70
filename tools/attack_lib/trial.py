"""One trial of the campaign: a directory of its own, a seeded source of chance, and the complaints that came up."""
import dataclasses
import pathlib
import random
import re
import shutil

from . import process, verdict

ADDRESS_SPACE = 4 << 30  # Protects the machine of the attacker from inputs that ask for all of its memory.
PROMISED_SHARE, PROMISED_SECONDS = 1.05, 0.3  # docs/reliability.md: a budget is kept within 5 % + 0.3 s.
LOADER_FAILED = 127
SLACK = 1.0  # Seconds that a busy machine may add to a promise.


@dataclasses.dataclass
class Complaint:
    """A promise that was not kept."""

    what: str
    text: str
    invocation: process.Invocation
    outputs: tuple  # What it may write.
    outcome: process.Outcome

    def signature(self):
        """Returns what two complaints about the same defect have in common."""
        words = self.outcome.stderr.decode("utf-8", "replace") if self.what == "bug" else ""
        return self.what, re.sub(r"U\+\w+|\d+|'[^']*'", "…", self.text + words)[:100]


@dataclasses.dataclass
class Bench:
    """What all trials share."""

    binary: pathlib.Path
    codes: set
    corpus: object  # Good files (corpus.py), or nothing if findings are replayed.
    root: pathlib.Path  # Trials have their directories here.
    patience: float = 20.0  # Seconds after which a command on a small input hangs.
    sanitized: bool = False  # The binary reserves terabytes of addresses, so that their number cannot be limited.


class Trial:
    """Runs commands in a fresh directory and holds each against the rules of verdict.py."""

    def __init__(self, bench, seed, kind, number):
        self.bench, self.kind, self.number = bench, kind, number
        self.rng = random.Random(f"{seed}:{kind}:{number}")
        self.directory = bench.root / f"{kind}-{number}"
        self.complaints, self.commands = [], 0
        self.evidence = None  # (file name, content, function that returns the complaints for other content)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)

    def close(self):
        """Removes the directory."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def write(self, name, content):
        """Writes a file of the trial and returns its name."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return name

    def read(self, name):
        """Returns a file's bytes, or nothing if it does not exist."""
        path = self.directory / name
        return path.read_bytes() if path.is_file() else None

    def files(self):
        """Returns what is in the directory: names and, of files, bytes."""
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in sorted(self.directory.rglob("*"))
                if path.is_file() and not path.is_symlink()}

    def run(self, *arguments, outputs=(), deaths=(), may_not_load=False, late_error=False,
            check_files=True, **how):
        """Runs the command, complains about all that verdict.py does and about files that it should not have touched.

        `outputs` are the files and directories that may appear or change, `deaths` the signals that may end it. With
        `may_not_load` the loader may fail, before any code of ours runs; with `late_error` an error may follow the
        report, because it is about writing something else. Without `check_files` another process may write here too.
        """
        arguments = [str(argument) for argument in arguments]
        how.setdefault("timeout", self.bench.patience)
        how.setdefault("limits", {"AS": ADDRESS_SPACE})
        if self.bench.sanitized:
            how["limits"] = {name: value for name, value in how["limits"].items() if name != "AS"}
        invocation = process.Invocation(arguments, **how)
        before = self.files()
        outcome = process.execute(self.bench.binary, invocation, self.directory)
        self.commands += 1
        self.last = (invocation, tuple(outputs), outcome)
        if may_not_load and outcome.code == LOADER_FAILED and b"error while loading shared libraries" in outcome.stderr:
            return outcome
        found = verdict.code_complaints(outcome, self.bench.codes, deaths)
        if not found and outcome.code >= 0:
            broken = {*invocation.closed, *invocation.full}
            if 2 not in broken:
                found += verdict.stderr_complaints(outcome, quiet="-q" in arguments)
            if 1 not in broken and not is_data_on_stdout(arguments) and not (late_error and outcome.code == 2):
                found += verdict.stdout_complaints(outcome, as_json=arguments[-1] == "--json")
        if check_files and not outcome.hung and outcome.code not in [-death for death in deaths]:
            found += self._file_complaints(before, outputs)
        for what, text in found:
            self.complain(what, text)
        return outcome

    def complain(self, what, text):
        """Notes a complaint about the last command."""
        self.complaints.append(Complaint(what, text, *self.last))

    def _file_complaints(self, before, outputs):
        after = self.files()
        expected = lambda name: any(name == output or name.startswith(f"{output}/") for output in outputs)
        for name in sorted(set(after) - set(before)):
            if not expected(name) or ".tmp" in name:
                yield "left behind", f"left the file {name}"
        for name, content in before.items():
            if not expected(name) and after.get(name) != content:
                yield "damaged", f"changed or removed {name}, which is no output"

    def result(self, outcome):
        """Returns the JSON that a successful command printed, or nothing."""
        try:
            return verdict.strict_json(outcome.stdout) if outcome.code in (0, 3) and outcome.stdout else None
        except (ValueError, RecursionError):
            return None

    def check_placement(self, graph, name, rules, makespan=None):
        """Complains unless the placement file is whole and simulates to the makespan that was reported for it."""
        content = self.read(name)
        if content is None:
            return self.complain("lost", f"{name} was not written")
        for what, text in verdict.json_complaints(name, content):
            return self.complain(what, text)
        claimed = verdict.strict_json(content).get("makespan") if makespan is None else makespan
        again = self.result(self.run("simulate", graph, name, *rules, "-q", "--json"))
        if again is None:
            return self.complain("wrong output", f"{name} cannot be simulated")
        if again["makespan"] != claimed:
            self.complain("wrong output", f"{name} claims makespan {claimed}; simulate finds {again['makespan']}")

    def late(self, seconds, allowed, again):
        """Complains if `seconds` are more than promised for `allowed`, three times in a row: once is a busy machine.
        `again` repeats the command and returns its seconds."""
        limit = allowed * PROMISED_SHARE + PROMISED_SECONDS + SLACK
        times = [seconds]
        while times[-1] > limit and len(times) < 3:
            times.append(again())
        if min(times) > limit:
            self.complain("late", f"took {min(times):.1f} s at best of {len(times)}; allowed {allowed:.1f} s")


def is_data_on_stdout(arguments):
    """Whether standard output is a file rather than a report: names in it are exact."""
    makes_file = arguments[:1] in (["generate"], ["lower"], ["calibrate"])
    names_output = any(flag in arguments for flag in ("-o", "--output"))
    return (makes_file and not names_output) or any(pair == ("-o", "-") for pair in zip(arguments, arguments[1:]))
