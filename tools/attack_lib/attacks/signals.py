"""SIGINT, SIGTERM and SIGHUP at random moments in every verb: what was found is kept, and the end comes soon."""
import shutil
import signal

from . import kills, streams, verbs

CHEAP_METHODS = 0.5  # Seconds after which every method has some placement.
BAD = {2: "bad input", 3: "no feasible placement"}


def attack(one):
    """Interrupts one long command once."""
    command = verbs.long(one.bench.corpus, one.rng)
    number = one.rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    moment = one.rng.choice((0.0, one.rng.uniform(0, 0.1), one.rng.uniform(0, 1.5)))
    outcome = one.run(*command.arguments, outputs=command.outputs, signal=int(number), after=moment)
    if not outcome.signalled or outcome.hung:
        return
    if outcome.code in BAD:
        one.complain("exit code", f"an interrupted {command.verb} says {BAD[outcome.code]}")
    one.late(outcome.after_signal, 0.0, lambda: repeat(one, command, int(number), moment))
    if command.verb == "train" and kills.started(one, "training"):
        resume(one, command)
    found_something = command.verb == "place" and (outcome.code == 0 or moment > CHEAP_METHODS)
    streams.check_outputs(one, command, must_exist=found_something)


def repeat(one, command, number, moment):
    """Interrupts the command again, in a directory without its outputs, and returns how long it took to end."""
    for name in command.outputs:
        shutil.rmtree(one.directory / name, ignore_errors=True)
        (one.directory / name).unlink(missing_ok=True)
    return one.run(*command.arguments, outputs=command.outputs, signal=number, after=moment).after_signal


def resume(one, command):
    """Goes on with an interrupted training for a moment: nothing of it may be lost."""
    again = ["0.2s" if word == "30s" else word for word in map(str, command.arguments)]
    outcome = one.run(*again, "--resume", outputs=command.outputs, signal=int(signal.SIGINT), after=2.0)
    if outcome.code in BAD:
        one.complain("lost", "an interrupted training cannot be resumed")
