"""Commands of every verb, for attacks on what is around a command rather than on its input."""
import dataclasses


@dataclasses.dataclass
class Command:
    """A command that succeeds if nobody disturbs it."""

    verb: str
    arguments: list
    outputs: tuple = ()  # Files and directories that it writes.
    graph: str = ""  # For a placement among them: what it is of,
    rules: tuple = ()  # and under which rules.


def short(corpus, rng):
    """Returns a command that takes milliseconds."""
    layered, ffnn = corpus.path("layered.json"), corpus.path("ffnn.json")
    placed, ran = corpus.path("layered.placement"), corpus.path("ffnn.placement")
    on = ("--machine", "p100x4")
    method = rng.choice(("single", "heft", "etf", "metis", "critical_path", "memory_greedy"))
    box = ("--machine", "cpu2", "--repeat", 1, "--warmup", 0)
    return rng.choice((
        Command("info", ["info", layered, *on, "--dot", "out.dot"], ("out.dot",)),
        Command("place", ["place", layered, *on, "--method", method, "-o", "out.json"], ("out.json",), layered, on),
        Command("place", ["place", layered, *on, "--method", "anneal", "--evaluations", 500, "-o", "out.json",
                          "--json"], ("out.json",), layered, on),
        Command("place", ["place", layered, *on, "--method", "doppler", "-o", "out.json"], ("out.json",), layered, on),
        Command("compare", ["compare", layered, *on, "--methods", f"heft,{method}", "--json=out.json"], ("out.json",)),
        Command("simulate", ["simulate", layered, placed, *on, "--trace", "out.json"], ("out.json",)),
        Command("run", ["run", ffnn, ran, *box, "--output", "arrays", "--trace", "out.json"], ("arrays", "out.json")),
        Command("run", ["run", layered, placed, *on, "--devices", "emulated", "--repeat", 1, "--warmup", 0,
                        "--json=out.json"], ("out.json",)),
        Command("generate", ["generate", "layered", "--ops", 200, "-o", "out.json"], ("out.json",)),
        Command("lower", ["lower", corpus.path("program.ein"), "--parts", 2, "-o", "out.json"], ("out.json",)),
        Command("explain", ["explain", corpus.path("program.ein"), "--parts", 2]),
        Command("train", ["train", layered, *on, "--episodes", 32, "--out", "training"], ("training",)),
    ))


def long(corpus, rng):
    """Returns a command that goes on for several seconds."""
    layered, large, ffnn = corpus.path("layered.json"), corpus.path("large.json"), corpus.path("ffnn.json")
    placed, ran = corpus.path("layered.placement"), corpus.path("ffnn.placement")
    on = ("--machine", "p100x4")
    method = rng.choice(("anneal", "exact", "auto", "metis", "doppler", "critical_path"))
    emulated = (*on, "--devices", "emulated", "--time-scale", 10)
    graph = rng.choice((layered, large))
    return rng.choice((
        Command("place", ["place", graph, *on, "--method", method, "--time", "30s", "-o", "out.json"], ("out.json",),
                graph, on),
        Command("place", ["place", layered, *on, "--method", "doppler", "--train", "30s", "-o", "out.json"],
                ("out.json",), layered, on),
        Command("compare", ["compare", graph, *on, "--methods", f"heft,{method},anneal", "--time", "10s"]),
        Command("run", ["run", ffnn, ran, "--machine", "cpu2", "--repeat", 1_000_000]),
        Command("run", ["run", layered, placed, *emulated, "--repeat", 10_000]),
        Command("run", ["run", layered, placed, *emulated, "--learn", "--runs", 100_000, "-o", "out.json", "--log",
                        "log"], ("out.json", "log"), layered, on),
        Command("validate", ["validate", layered, *emulated, "--placements", 50, "--repeat", 50]),
        Command("calibrate", ["calibrate", ffnn, "--placements", 500, "--repeat", 500, "-o", "out.json"],
                ("out.json",)),
        Command("train", ["train", layered, *on, "--time", "30s", "--out", "training"], ("training",)),
        Command("train", ["train", layered, *emulated, "--episodes", 64, "--stages", "simulation,system", "--out",
                          "training"], ("training",)),
        Command("generate", ["generate", "layered", "--ops", 300_000, "-o", "out.json"], ("out.json",)),
    ))
