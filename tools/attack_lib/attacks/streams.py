"""Closed and full standard streams. They change neither the exit code of good work nor what is in its files."""
from .. import verdict
from . import verbs

STATES = ("open", "closed", "full")


def attack(one):
    """Runs a short command twice: with broken streams, and with whole ones if the result must be compared."""
    command = verbs.short(one.bench.corpus, one.rng)
    if one.rng.random() < 0.2:
        command = verbs.Command("info", ["info", "missing.json"])
    state = [one.rng.choice(STATES) for _ in range(3)]
    state[0] = one.rng.choice(("open", "closed"))
    broken = {"closed": tuple(fd for fd in range(3) if state[fd] == "closed"),
              "full": tuple(fd for fd in range(3) if state[fd] == "full")}
    outcome = one.run(*command.arguments, outputs=command.outputs, **broken)
    only_stderr = state[1] == "open"
    expected = 2 if command.arguments[1] == "missing.json" else 0
    if only_stderr and outcome.code != expected and outcome.code >= 0:
        one.complain("exit code", f"exit code {outcome.code} without standard error; {expected} with it")
    check_outputs(one, command, must_exist=expected == 0)


def check_outputs(one, command, must_exist):
    """Complains about outputs that are not whole: JSON that does not parse, placements that do not simulate."""
    for name in command.outputs:
        if name == "training":
            check_training(one, must_exist)
        elif name == "out.json" and (must_exist or one.read(name) is not None):
            if command.graph:
                one.check_placement(command.graph, name, command.rules)
            else:
                check_json(one, name)


def check_json(one, name):
    """Complains unless the file is there and is JSON."""
    content = one.read(name)
    if content is None:
        return one.complain("lost", f"{name} was not written")
    for what, text in verdict.json_complaints(name, content):
        one.complain(what, text)


def check_training(one, must_exist):
    """Complains about metrics that are not lines of JSON, and about a training without a policy."""
    if must_exist and one.read("training/policy") is None:
        one.complain("lost", "the training has no policy")
    for line in (one.read("training/metrics.jsonl") or b"").splitlines():
        for what, text in verdict.json_complaints("training/metrics.jsonl", line):
            return one.complain(what, text)
