"""Resource limits at random: the command ends with a documented code and leaves nothing half done."""
import signal

from . import streams, verbs

MIB = 1 << 20


def attack(one):
    """Runs a short command under one or two limits."""
    command = verbs.short(one.bench.corpus, one.rng)
    choices = {
        "AS": [size * MIB for size in (30, 60, 100, 150, 200, 300, 600, 1000)],
        "NOFILE": [3, 4, 5, 6, 8, 16],
        "STACK": [size << 10 for size in (256, 512, 1024)],
        "CPU": [1],
    }
    names = one.rng.sample(sorted(choices), one.rng.choice((1, 1, 2)))
    limits = {name: one.rng.choice(choices[name]) for name in names}
    outcome = one.run(*command.arguments, outputs=command.outputs, limits=limits, may_not_load=True, late_error=True,
                      deaths=(signal.SIGXCPU, signal.SIGKILL) if "CPU" in limits else ())
    if outcome.code >= 0:
        streams.check_outputs(one, command, must_exist=outcome.code == 0)
