"""`--time` is a promise: 5 % + 0.3 s, whatever the graph, the machine and the method."""
import json

METHODS = ("single", "critical_path", "heft", "etf", "cpop", "metis", "enumerative", "memory_greedy", "exact", "anneal",
           "doppler", "auto")


def attack(one):
    """Places a graph of random shape within a random time, on a machine that may be too small for it."""
    rng = one.rng
    shape = rng.choice(("layered", "random", "series-parallel", "chain-of-blocks"))
    ops = rng.choice((300, 2000, 10_000) if shape != "random" else (300, 1000))
    one.run("generate", shape, "--ops", ops, "--seed", one.number, "-o", "graph.json", outputs=("graph.json",),
            timeout=60)
    machine = ("--machine", rng.choice(("p100x4", "v100x8", "uniform:2", small(one), many(one))))
    reading = one.run("info", "graph.json", *machine, "-q", "--json", timeout=60)
    if reading.code != 0:
        return
    allowed = rng.choice((0.2, 0.5, 1.0))
    method = rng.choice(METHODS)
    command = ["place", "graph.json", *machine, "--method", method, "--time", f"{allowed}s", "-q", "--json"]
    once = lambda: one.run(*command, timeout=60).seconds
    one.late(once(), allowed + 2 * reading.seconds, once)


def small(one):
    """Writes a machine whose memory holds only a part of most graphs."""
    return machine_file(one, "small.json", {"count": 4, "memory": f"{one.rng.choice((1, 50, 200))}MiB",
                                            "memory_bytes_per_second": 7e11})


def many(one):
    """Writes a machine of many devices."""
    return machine_file(one, "many.json", {"count": one.rng.choice((64, 500, 1000))})


def machine_file(one, name, properties):
    """Writes a machine of equal GPUs and returns its name."""
    device = {"name": "g", "type": "gpu", "rates": [{"flops_per_second": 1e13}], **properties}
    machine = {"format": "doppler-machine", "version": 1, "name": name, "devices": [device],
               "links": {"default": {"bytes_per_second": 1e10}}}
    return one.write(name, json.dumps(machine).encode())
