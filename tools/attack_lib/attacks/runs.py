"""Programs that run with random capacities, disciplines and links: right results, or a named lack of memory."""
import json


def attack(one):
    """Runs a program with little memory and compares its results with those of one device that has enough."""
    rng, corpus = one.rng, one.bench.corpus
    graph = corpus.path(rng.choice(("ffnn.json", "chainmm.json")))
    count = rng.randint(1, 4)
    devices = [{"name": f"cpu{i}", "type": "cpu", "rates": [{"flops_per_second": 1e10}]} for i in range(count)]
    for device in devices:
        if rng.random() < 0.7:
            device["memory"] = rng.choice((200, 500, 1000, 2000, 5000, 20_000))
    machine = {"format": "doppler-machine", "version": 1, "name": "box", "devices": devices,
               "links": {"model": rng.choice(("free", "channels", "receiver")), "default": {"bytes_per_second": 1e9}}}
    one.write("machine.json", json.dumps(machine).encode())
    ops = len(json.loads(corpus.read(graph.rsplit("/", 1)[-1]))["ops"])
    placement = {"format": "doppler-placement", "version": 1, "assignment": [rng.randrange(count) for _ in range(ops)],
                 "priority": rng.sample(range(ops), ops)}
    one.write("placement.json", json.dumps(placement).encode())
    rules = ["--machine", "machine.json", "--discipline", rng.choice(("fifo", "priority", "ordered", "random"))]
    ran = one.run("run", graph, "placement.json", *rules, "--repeat", rng.choice((1, 5)), "--warmup", 0,
                  "--deterministic", "--stall-after", "5s", "--output", "arrays", "-q", outputs=("arrays",))
    if ran.code == 0:
        compare_with_one_device(one, graph, ops)
    elif ran.code == 3 and not any("memory" in device for device in devices):
        one.complain("wrong output", "no feasible run though every memory is unlimited")
    emulated = one.run("run", graph, "placement.json", *rules, "--devices", "emulated", "--repeat", 1, "--warmup", 0,
                       "--stall-after", "5s", "-q", "--json")
    if emulated.code == 2:
        one.complain("exit code", "an emulated run of a valid placement is called bad input")


def compare_with_one_device(one, graph, ops):
    """Complains if the results are not, to the bit, those of a run on one device."""
    single = {"format": "doppler-placement", "version": 1, "assignment": [0] * ops}
    one.write("single.json", json.dumps(single).encode())
    one.run("run", graph, "single.json", "--machine", "cpu2", "--repeat", 1, "--warmup", 0, "--deterministic",
            "--output", "expected", "-q", outputs=("expected",))
    files = one.files()
    expected = {name[len("expected/"):]: content for name, content in files.items() if name.startswith("expected/")}
    found = {name[len("arrays/"):]: content for name, content in files.items() if name.startswith("arrays/")}
    if expected != found:
        one.complain("wrong output", f"results {sorted(found)} differ from {sorted(expected)} of one device")
