"""Random small graphs, machines and rules, with everything that makes schedules hard to get right."""
import json

TIMES = (0, 0, 1, 1, 2, 3, 5, 10)
BYTES = (0, 0, 1, 4, 16, 100)


def graph(rng, most_ops=9):
    """Returns a graph with zero times, several tensors between two ops, groups, and ops that some types cannot run."""
    count = rng.randint(1, most_ops)
    ops = []
    for index in range(count):
        times = {"*": rng.choice(TIMES)}
        if rng.random() < 0.15:
            times["gpu"] = rng.choice(TIMES)
        if rng.random() < 0.08:
            times["cpu"] = "never"
        op = {"name": f"op{index}", "times": times, "parameter_bytes": rng.choice(BYTES)}
        if rng.random() < 0.15:
            op["group"] = f"group{rng.randrange(2)}"
        ops.append(op)
    tensors = []
    for producer in range(count):
        for _ in range(rng.choice((0, 1, 1, 2))):
            later = range(producer + 1, count)
            consumers = rng.sample(later, min(len(later), rng.choice((0, 1, 1, 2, 3))))
            tensor = {"producer": producer, "bytes": rng.choice(BYTES), "consumers": consumers}
            if rng.random() < 0.7:
                tensor["transfer"] = rng.choice(TIMES)
            tensors.append(tensor)
    file = {"format": "doppler-graph", "version": 1, "unitless": True, "ops": ops, "tensors": tensors}
    return json.dumps(file).encode()


def machine(rng):
    """Returns one to four devices, some with little memory or unequal links; the first can run every op."""
    devices = []
    for index in range(rng.randint(1, 4)):
        kind = rng.choice(("gpu", "cpu")) if index else "gpu"
        device = {"name": f"d{index}", "type": kind, "slots": rng.choice((1, 1, 1, 2))}
        if rng.random() < 0.3:
            device["slowdown"] = rng.choice((1, 2, 3))
        if rng.random() < 0.3:
            device["memory"] = rng.choice((50, 150, 400, 1000))
        devices.append(device)
    links = {"default": {"latency": rng.choice((0, 1)), "bytes_per_second": rng.choice((0, 1, 4)),
                         "channels": rng.choice((1, 1, 2))}}
    if len(devices) > 1 and rng.random() < 0.5:
        links["pairs"] = [{"from": "d0", "to": "d1", "cost_factor": rng.choice((0, 2)), "latency": rng.choice((0, 3))}]
    file = {"format": "doppler-machine", "version": 1, "name": "random", "devices": devices, "links": links}
    return json.dumps(file).encode()


def rules(rng, machine_file):
    """Returns flags for discipline, links, ties and barriers; published ties are those of devices with one slot."""
    flags = ["--discipline", rng.choice(("fifo", "priority", "ordered", "random")),
             "--links", rng.choice(("free", "channels", "receiver"))]
    one_slot = all(device["slots"] == 1 for device in json.loads(machine_file)["devices"])
    if flags[1] == "fifo" and flags[3] == "free" and one_slot and rng.random() < 0.3:
        flags += ["--ties", "published"]
        return flags
    return [*flags, "--bulk-synchronous"] if rng.random() < 0.1 else flags
