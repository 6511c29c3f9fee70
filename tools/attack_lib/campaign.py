"""The campaign: trials of all kinds in turn until the time is up, findings kept and counted, one summary."""
import dataclasses
import json
import pathlib
import shutil
import sys
import time

from . import attacks, minimise, process, trial

SHRINK_SECONDS = 15.0


@dataclasses.dataclass
class Tally:
    """Counts of one kind."""

    trials: int = 0
    commands: int = 0
    seconds: float = 0.0
    complaints: int = 0
    findings: int = 0


class Campaign:
    """Runs trials and remembers which findings are new."""

    def __init__(self, bench, seed, kinds, keep, progress=sys.stderr):
        self.bench, self.seed, self.keep, self.progress = bench, seed, pathlib.Path(keep), progress
        self.tallies = {kind: Tally() for kind in kinds}
        self.known = {}

    def run(self, seconds):
        """Gives every kind an equal share of `seconds`, one trial at a time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            kind = min(self.tallies, key=lambda name: self.tallies[name].seconds)
            self.trial(kind, self.tallies[kind].trials)
            self._show(deadline)

    def run_rounds(self, count):
        """Runs the same trials whatever the clock says, so that a test of them does not change from run to run."""
        for _ in range(count):
            for kind, tally in self.tallies.items():
                for _ in range(attacks.ROUND[kind]):
                    self.trial(kind, tally.trials)

    def replay(self, directory):
        """Runs the commands of all findings below a directory again."""
        for number, path in enumerate(sorted(directory.glob("*/finding.json"))):
            self.tallies.setdefault("replay", Tally())
            self.trial("replay", number, lambda one, finding=path.parent: replay(one, finding))

    def trial(self, kind, number, attack=None):
        """Runs one trial; its seed, kind and number say everything about it."""
        tally, start = self.tallies[kind], time.monotonic()
        one = trial.Trial(self.bench, self.seed, kind, number)
        try:
            (attack or attacks.KINDS[kind])(one)
            for complaint in one.complaints:
                self._note(one, complaint, tally)
        finally:
            one.close()
        tally.trials += 1
        tally.commands += one.commands
        tally.seconds += time.monotonic() - start

    def _note(self, one, complaint, tally):
        tally.complaints += 1
        signature = (one.kind, *complaint.signature())
        if signature in self.known:
            self.known[signature] += 1
            return
        self.known[signature] = 1
        tally.findings += 1
        where = self.keep / f"{one.kind}-{one.number}-{tally.findings}-{complaint.what.replace(' ', '_')}"
        write_finding(one, complaint, where, self.seed)
        print(f"\r{one.kind} {one.number}: {complaint.what}: {complaint.text}; see {where}", file=self.progress)

    def _show(self, deadline):
        if self.progress.isatty():
            done = sum(tally.trials for tally in self.tallies.values())
            left = max(0, deadline - time.monotonic())
            text = f"\r{done} trials, {len(self.known)} findings, {left:.0f} s left "
            print(text, end="", file=self.progress, flush=True)

    def summary(self):
        """Returns the counts as a table."""
        rows = [("kind", "trials", "commands", "seconds", "complaints", "findings")]
        for kind, tally in self.tallies.items():
            if tally.trials == 0:
                continue
            rows.append((kind, tally.trials, tally.commands, f"{tally.seconds:.0f}", tally.complaints, tally.findings))
        total = [sum(getattr(tally, field) for tally in self.tallies.values())
                 for field in ("trials", "commands", "seconds", "complaints", "findings")]
        rows.append(("all", total[0], total[1], f"{total[2]:.0f}", total[3], total[4]))
        return "\n".join("  ".join(f"{cell:>10}" if i else f"{cell:<8}" for i, cell in enumerate(row)) for row in rows)


def write_finding(one, complaint, where, seed):
    """Writes all that is needed to see the defect again: files, command line, streams, and the trial's name."""
    (where / "files").mkdir(parents=True, exist_ok=True)
    for name, content in one.files().items():
        write(where / "files" / name, content)
    if one.evidence:
        name, content, replay_with = one.evidence
        if replay_with:
            same = lambda smaller: any(each.what == complaint.what for each in replay_with(smaller))
            content = minimise.minimise(content, same, SHRINK_SECONDS)
        write(where / "files" / name, content)
    invocation = with_copies_of_inputs(complaint.invocation, one.bench.corpus, where / "files")
    shell = f"#!/bin/sh\ncd \"$(dirname \"$0\")/files\" && {invocation.shell(one.bench.binary)}\n"
    write(where / "command", shell.encode("utf-8", "replace"))
    write(where / "stdout", complaint.outcome.stdout)
    write(where / "stderr", complaint.outcome.stderr)
    usual = dataclasses.asdict(process.Invocation([]))
    unusual = {key: value for key, value in dataclasses.asdict(invocation).items() if value != usual[key]}
    write(where / "finding.json", json.dumps({
        "what": complaint.what, "text": complaint.text, "code": complaint.outcome.code,
        "again": f"tools/attack --seed {seed} --only {one.kind} --trial {one.number}",
        "outputs": complaint.outputs, "invocation": unusual}, indent=2).encode() + b"\n")


def write(path, content):
    """Writes a file and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def with_copies_of_inputs(invocation, corpus, directory):
    """Copies the files of the corpus that a command names, and returns the command with their new names."""
    names = {str(path): name for name, path in corpus.files.items()} if corpus else {}
    for argument in invocation.arguments:
        if argument in names:
            write(directory / names[argument], corpus.read(names[argument]))
    return dataclasses.replace(invocation, arguments=[names.get(argument, argument) for argument in invocation.arguments])


def replay(one, finding):
    """Runs the command of a kept finding on its files."""
    kept = json.loads((finding / "finding.json").read_text(encoding="utf-8"))
    if (finding / "files").exists():
        shutil.copytree(finding / "files", one.directory, dirs_exist_ok=True)
    how = kept["invocation"]
    one.run(*how.pop("arguments"), outputs=kept["outputs"], **how)
