"""The kinds of attack. Each is a function of a trial that runs commands and complains."""
from . import budgets, files, kills, limits, methods, outputs, runs, signals, streams

# What a round of the short campaign has of each kind: about five seconds on an idle machine.
ROUND = {"files": 60, "methods": 4, "budgets": 1, "streams": 15, "outputs": 15, "limits": 15, "signals": 2, "kills": 1,
         "runs": 4}

KINDS = {
    "files": files.attack,  # Mutated inputs of every format.
    "methods": methods.attack,  # Properties of what methods find.
    "budgets": budgets.attack,  # --time is kept.
    "streams": streams.attack,  # Closed and full standard streams.
    "outputs": outputs.attack,  # Full disks, and paths that cannot be written.
    "limits": limits.attack,  # Little memory, few descriptors, small stacks.
    "signals": signals.attack,  # Interruption of every verb.
    "kills": kills.attack,  # kill -9 in every stage of a training, two trainings at once.
    "runs": runs.attack,  # Programs that run with little memory.
}
