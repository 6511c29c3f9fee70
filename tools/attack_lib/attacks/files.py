"""Mutated files of every kind, given to every verb that reads them."""
import dataclasses
import typing

from .. import corpus as corpora
from .. import json_file, policy_file, protobuf_file, trial, values, words_file

FILE = "FILE"  # Stands for the mutated file in the commands below.
CHEAP = ("single", "round_robin", "random", "critical_path", "heft", "etf", "cpop", "metis", "enumerative",
         "memory_greedy")


@dataclasses.dataclass(frozen=True)
class Target:
    """A kind of file: where good ones are, how it is mutated, and the commands that read it."""

    seeds: tuple
    mutate: typing.Callable
    commands: typing.Callable  # Of a trial; returns one command, with FILE in it.
    name: str = "input"
    training: str = ""  # The training that the file is part of, copied to `run`.


def attack(one):
    """Mutates one file and runs one command on it."""
    target = TARGETS[one.rng.choice(sorted(TARGETS))]
    seed = one.rng.choice(one.bench.corpus.matching(*target.seeds))
    content = target.mutate(one.rng, one.bench.corpus.read(seed))
    arguments = [target.name if word == FILE else word for word in target.commands(one)]
    read(one, target, arguments, content)
    one.evidence = (target.name, content, lambda smaller: replay(one, target, arguments, smaller))


def replay(one, target, arguments, content):
    """Returns what a fresh trial of the same command complains about with other content."""
    again = trial.Trial(one.bench, "", f"{one.kind}-again", one.number)
    try:
        read(again, target, arguments, content)
        return again.complaints
    finally:
        again.close()


def read(one, target, arguments, content):
    """Runs the command on the content and looks at what it wrote."""
    if target.training:
        one.bench.corpus.copy_training(target.training, one.directory / "run")
    one.write(target.name, content)
    outcome = one.run(*arguments, outputs=("out.json", "out.dot", "out.onnx", "run"))
    if outcome.code != 0 or "out.json" not in arguments:
        return
    if arguments[0] == "place" and "--export" not in arguments:
        rules = arguments[arguments.index("--machine") : arguments.index("--method")]
        result = one.result(outcome)
        one.check_placement(arguments[1], "out.json", rules, result["makespan"] if result else None)
    elif arguments[0] == "lower":
        one.run("info", "out.json", "-q", "--json")


def graph_command(one):
    """Returns a command for any graph."""
    rng = one.rng
    machine = ("--machine", rng.choice(("uniform:3", "uniform:2:1KiB", "p100x4", "cpu+gpu")))
    placing = ["place", FILE, *machine, "--method", rng.choice(CHEAP), "-o", "out.json"]
    return rng.choice((
        ["info", FILE], ["info", FILE, "-q", "--json"], ["info", FILE, *machine, "--dot", "out.dot"],
        placing, [*placing, "-q", "--json"],
        [*placing[:-4], "--method", "anneal", "--evaluations", "200", "-o", "out.json", "-q", "--json"],
        [*placing, "--pin", f"{values.name(rng).replace(chr(0), '')}=0"],
        ["compare", FILE, *machine, "--methods", f"heft,{rng.choice(CHEAP)}"],
    ))


def program_command(one):
    """Returns a command for a program, a lowered graph or a model."""
    parts = one.rng.choice(("1", "2", "4", "64"))
    return one.rng.choice((
        graph_command(one), ["lower", FILE, "--parts", parts, "-o", "out.json"], ["lower", FILE, "--parts", parts],
        ["lower", FILE, "--train", one.rng.choice(("sgd", "adam")), "-o", "out.json"],
        ["explain", FILE, "--parts", parts],
    ))


def model_command(one):
    """Returns a command for an ONNX model."""
    exporting = ["place", FILE, "--machine", "p100x4", "--method", "heft", "--export"]
    return one.rng.choice((
        graph_command(one), ["lower", FILE, "-o", "out.json"], ["info", FILE, "--shard", "4", "-q", "--json"],
        [*exporting, "onnx", "-o", "out.onnx"], [*exporting, "device-map", "-o", "out.json"],
    ))


def machine_command(one):
    """Returns a command for a machine."""
    graph = one.bench.corpus.path(one.rng.choice(("layered.json", "native_small.json", "stg.stg", "ffnn.json")))
    placing = ["place", graph, "--machine", FILE, "--method", one.rng.choice(CHEAP), "-o", "out.json"]
    return one.rng.choice((["info", graph, "--machine", FILE], placing, [*placing, "-q", "--json"]))


def placement_command(one):
    """Returns a command for a placement."""
    simulating = ["simulate", one.bench.corpus.path("layered.json"), FILE, "--machine", "p100x4"]
    running = ["run", one.bench.corpus.path("layered.json"), FILE, "--machine", "p100x4", "--devices", "emulated",
               "--repeat", "1", "--warmup", "0"]
    return one.rng.choice((simulating, [*simulating, "--trace", "out.json"], [*simulating, "-q", "--json"], running))


def policy_command(one):
    """Returns a command for a policy."""
    graph = one.bench.corpus.path("layered.json")
    placing = ["place", graph, "--machine", "p100x4", "--method", "doppler", "--checkpoint", FILE]
    return one.rng.choice((
        [*placing, "--alone", "-o", "out.json"], [*placing, "-o", "out.json", "-q", "--json"],
        ["train", graph, "--machine", "p100x4", "--start", FILE, "--episodes", "32", "--out", "run"],
    ))


def resume_command(one):
    """Returns a command that goes on with a training."""
    flags = list(corpora.TRAINING)
    flags[flags.index("--episodes") + 1] = one.rng.choice(("96", "160"))
    return ["train", one.bench.corpus.path("layered.json"), *flags, "--out", "run", "--resume"]


def resume_system_command(one):
    """Returns a command that goes on with a training on emulated devices."""
    return ["train", one.bench.corpus.path("layered.json"), *corpora.SYSTEM, "--out", "run", "--resume"]


def array_command(one):
    """Returns a command that reads an input of a program."""
    return ["run", one.bench.corpus.path("ffnn.json"), one.bench.corpus.path("ffnn.placement"), "--machine", "cpu2",
            "--repeat", "1", "--warmup", "0", "--input", f"{one.rng.choice(('x', 'input', 'w1'))}=input"]


TARGETS = {
    "native": Target(("layered.json", "native_small"), json_file.mutate, graph_command),
    "program json": Target(("ffnn.json", "native_program", "chainmm.json"), json_file.mutate, graph_command),
    "published": Target(("published.txt",), words_file.mutate, graph_command),
    "stg": Target((".stg",), words_file.mutate, graph_command),
    "wfcommons": Target(("wfcommons",), json_file.mutate, graph_command),
    "dnn": Target(("dnn_partitioning",), json_file.mutate, graph_command),
    "ein": Target((".ein",), words_file.mutate, program_command),
    "onnx": Target((".onnx",), protobuf_file.mutate, model_command),
    "machine": Target(("machine.json",), json_file.mutate, machine_command),
    "placement": Target((".placement", ".result"), json_file.mutate, placement_command),
    "policy": Target((".policy",), policy_file.mutate, policy_command),
    "checkpoint": Target(("checkpoint",), policy_file.mutate, resume_command, "run/checkpoint", "training"),
    "metrics": Target(("metrics.jsonl",), lambda rng, content: lines(rng, content), resume_command, "run/metrics.jsonl",
                      "training"),
    "measurements": Target(("measurements.jsonl",), lambda rng, content: lines(rng, content), resume_system_command,
                           "run/measurements.jsonl", "system"),
    "array": Target(("array.npy",), values.damaged, array_command),
}


def lines(rng, content):
    """Mutates one line of JSON lines, or the file as words."""
    found = content.splitlines(keepends=True)
    if not found or rng.random() < 0.3:
        return words_file.mutate(rng, content)
    at = rng.randrange(len(found))
    found[at] = json_file.mutate(rng, found[at].rstrip(b"\n")) + b"\n"
    return b"".join(found)
