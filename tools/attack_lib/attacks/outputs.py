"""Outputs that cannot be written, wholly or at all: full disks, short writes, wrong paths, links, the input itself."""
import json
import os

from . import streams, verbs

FORBIDDEN = ("/proc/doppler.json", "/sys/doppler.json", "missing/out.json", ".", "x" * 300, "/dev/full",
             "input.json/out.json")
NO_DIRECTORIES = ("/proc/doppler", "/dev/full", "input.json", "input.json/out", "x" * 300)  # `train` makes others.


def attack(one):
    """Picks one way in which an output fails."""
    one.rng.choice((full_disk, forbidden_path, through_a_link, onto_the_input, named_results))(one)


def full_disk(one):
    """A limit on the size of files makes writes short and then fail. What is there is whole, or is not there."""
    command = verbs.short(one.bench.corpus, one.rng)
    one.write("out.json", b'{"old": true}')
    outcome = one.run(*command.arguments, outputs=command.outputs, late_error=True,
                      limits={"FSIZE": one.rng.choice((0, 1, 100, 1000, 4096, 20_000, 100_000))})
    if one.read("out.json") == b'{"old": true}':
        if outcome.code == 0 and "out.json" in command.outputs:
            one.complain("lost", "exit code 0 without the output")
        return
    streams.check_outputs(one, command, must_exist=outcome.code == 0)


def forbidden_path(one):
    """A path that cannot be written is bad input, and nothing else happens."""
    one.write("input.json", one.bench.corpus.read("layered.json"))
    path = one.rng.choice(FORBIDDEN)
    command = one.rng.choice((
        ["place", "input.json", "--machine", "p100x4", "--method", "heft", "-o", path],
        ["place", "input.json", "--machine", "p100x4", "--method", "heft", f"--json={path}"],
        ["info", "input.json", "--dot", path], ["generate", "layered", "--ops", 50, "-o", path],
        ["lower", one.bench.corpus.path("program.ein"), "-o", path],
        ["train", "input.json", "--machine", "p100x4", "--episodes", 16, "--out", one.rng.choice(NO_DIRECTORIES)],
    ))
    outcome = one.run(*command, late_error=True)
    if outcome.code == 0:
        one.complain("exit code", f"exit code 0 though '{path[:40]}' cannot be written")


def through_a_link(one):
    """An output through a symbolic link replaces its target; the link stays."""
    one.write("elsewhere/target.json", b"{}")
    os.symlink("elsewhere/target.json", one.directory / "out.json")
    graph, rules = one.bench.corpus.path("layered.json"), ("--machine", "p100x4")
    one.run("place", graph, *rules, "--method", "heft", "-o", "out.json", outputs=("elsewhere/target.json", "out.json"))
    if not (one.directory / "out.json").is_symlink():
        one.complain("damaged", "a symbolic link was replaced by a file")
    one.check_placement(graph, "elsewhere/target.json", rules)


def onto_the_input(one):
    """An output onto an input is refused, however the path is spelt."""
    one.write("graph.json", one.bench.corpus.read("layered.json"))
    os.symlink("graph.json", one.directory / "link.json")
    os.link(one.directory / "graph.json", one.directory / "hard.json")
    path = one.rng.choice(("graph.json", "./graph.json", "link.json", "hard.json", str(one.directory / "graph.json")))
    outcome = one.run("place", "graph.json", "--machine", "p100x4", "--method", "heft",
                      *one.rng.choice((["-o", path], [f"--json={path}"])),
                      outputs=("hard.json",) * (path == "hard.json"))
    if outcome.code == 0 and path != "hard.json":  # Replacing a hard link leaves the graph as it is.
        one.complain("exit code", "an output that is the input was not refused")


def named_results(one):
    """Results of a program whose names cannot all be files are refused before the run, or all written."""
    names = one.rng.sample(("a/b", "a_b", "a b", "a.b", "..", "a\0b", "x" * 300, "é"), 2)
    text = "size n = 4\ninput x[n]\n" + "".join(f"y{i}[n] = x[n] + {i}\n" for i in range(2))
    one.write("program.ein", text.encode())
    one.run("lower", "program.ein", "--parts", 2, "-o", "graph.json", outputs=("graph.json",))
    lowered = one.read("graph.json")
    for index, name in enumerate(names):
        lowered = lowered.replace(b'"y%d' % index, b'"' + json.dumps(name)[1:-1].encode())
    one.write("graph.json", lowered)
    placed = one.run("place", "graph.json", "--machine", "cpu2", "--method", "heft", "-o", "p.json",
                     outputs=("p.json",))
    if placed.code != 0:
        return
    ran = one.run("run", "graph.json", "p.json", "--machine", "cpu2", "--repeat", 1, "--warmup", 0, "--output",
                  "arrays", outputs=("arrays",))
    written = list((one.directory / "arrays").rglob("*.npy")) if (one.directory / "arrays").exists() else []
    if ran.code == 0 and len(written) != len(names):
        one.complain("lost", f"{len(names)} results, {len(written)} files")
