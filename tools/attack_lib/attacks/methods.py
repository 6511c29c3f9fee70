"""Properties of every method on random small problems: legal, not below the bound, reproducible, none beats `exact`."""
from .. import random_cases

METHODS = ("single", "round_robin", "random", "critical_path", "heft", "etf", "cpop", "metis", "enumerative",
           "memory_greedy", "anneal", "doppler", "auto")
ROUNDING = 1e-9  # The bound and the makespan add the same numbers in different orders.
PROVEN = 5  # Ops up to which `exact` finishes its proof within its evaluations, bound or not.
EVALUATIONS, EVALUATIONS_OF_EXACT = 2000, 200_000


def attack(one):
    """Places one problem by `exact` and two other methods."""
    graph = one.write("graph.json", random_cases.graph(one.rng))
    machine = random_cases.machine(one.rng)
    rules = ["--machine", one.write("machine.json", machine), *random_cases.rules(one.rng, machine)]
    one.evidence = (graph, one.read(graph), None)
    exact = place(one, graph, rules, "exact", EVALUATIONS_OF_EXACT)
    proven = exact is not None and (exact["optimal"] or exact["ops"] <= PROVEN)
    for method in one.rng.sample(METHODS, 2):
        found = place(one, graph, rules, method)
        if found and exact is None:
            one.complain("wrong output", f"{method} finds a placement, exact finds none")
        elif found and proven and found["makespan"] < exact["makespan"] * (1 - ROUNDING):
            one.complain("wrong output", f"{method} finds {found['makespan']}, exact {exact['makespan']}")


def place(one, graph, rules, method, evaluations=EVALUATIONS):
    """Places once, checks the result, and places again to see the same bytes. Returns what fits, or nothing."""
    command = ["place", graph, *rules, "--method", method, "--evaluations", evaluations, "--seed", one.number]
    outcome = one.run(*command, "-o", "a.json", "-q", "--json", outputs=("a.json",))
    result = one.result(outcome)
    if outcome.code == 3:
        return None
    if result is None:
        if outcome.code != 0:
            one.complain("wrong output", f"exit code {outcome.code} for a valid problem")
        return None
    if result["makespan"] < result["lower_bound"] * (1 - ROUNDING):
        one.complain("wrong output", f"{method}: makespan {result['makespan']} below the bound {result['lower_bound']}")
    one.check_placement(graph, "a.json", [*rules, "--seed", one.number], result["makespan"])
    one.run(*command, "--threads", 1, "-o", "b.json", "-q", outputs=("b.json",))
    if one.read("a.json") != one.read("b.json"):
        one.complain("not reproducible", f"{method}: the same seed and --evaluations give other bytes")
    return result
