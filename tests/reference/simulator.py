"""A reference simulator, written from docs/simulator.md and docs/machines.md alone, by someone who has not read
doppler/sim. It is slow and obvious: at every instant it does what the page says, in the order of the page.
"""
import dataclasses


@dataclasses.dataclass
class Rules:
    """How devices choose ops and how tensors move."""

    discipline: str = "fifo"  # fifo, priority or ordered.
    links: str = "free"  # free, channels, receiver or shared.
    bulk_synchronous: bool = False


@dataclasses.dataclass
class Result:
    """When everything happened."""

    makespan: float
    start: list  # Of each op.
    transfers: int
    transferred_bytes: int


class Problem:
    """A native graph on a machine, both as their JSON files have them, and a placement."""

    def __init__(self, graph, machine, assignment, priority=None):
        self.ops, self.tensors = graph["ops"], graph["tensors"]
        self.devices, self.links = machine["devices"], machine.get("links", {})
        self.hands_over = False  # simulate() sets it by the rules
        self.device_of = assignment
        self.outputs = [[t for t, tensor in enumerate(self.tensors) if tensor["producer"] == op]
                        for op in range(len(self.ops))]
        self.inputs = [[t for t, tensor in enumerate(self.tensors) if op in tensor.get("consumers", [])]
                       for op in range(len(self.ops))]
        self.rank = priority or [-level for level in self.b_levels()]

    def b_levels(self):
        """The longest path from each op to an exit, mean costs, every edge charged: the rank if none is given."""
        devices = range(len(self.devices))
        pairs = [(src, dst) for src in devices for dst in devices if src != dst]
        compute = [sum(self.op_time(op, device) for device in devices) / len(devices) for op in range(len(self.ops))]
        move = [sum(self.transfer_time(t, *pair) for pair in pairs) / max(1, len(pairs))
                for t in range(len(self.tensors))]
        level = [None] * len(self.ops)
        while None in level:
            for op in range(len(self.ops)):
                edges = [(t, consumer) for t in self.outputs[op] for consumer in self.tensors[t].get("consumers", [])]
                if all(level[consumer] is not None for _, consumer in edges):
                    level[op] = compute[op] + max((move[t] + level[consumer] for t, consumer in edges), default=0)
        return level

    def op_time(self, op, device=None):
        """Seconds of an op on a device, its own by default: the explicit time of the type, times the slowdown."""
        device = self.devices[self.device_of[op] if device is None else device]
        times = self.ops[op]["times"]
        kinds = [device["type"], *(["accelerator"] if device["type"] != "cpu" else []), "*"]
        return next(times[kind] for kind in kinds if kind in times) * device.get("slowdown", 1)

    def link(self, src, dst):
        """The properties of the link from one device to another; each pair changes only what it names."""
        found = dict(self.links.get("default", {}))
        names = [self.devices[src]["name"], self.devices[dst]["name"]]
        for pair in self.links.get("pairs", []):
            ends = [pair.get("from"), pair.get("to")]
            if ends == names or ("between" in pair and sorted(pair["between"]) == sorted(names)):
                found.update({key: value for key, value in pair.items() if key not in ("from", "to", "between")})
        return found

    def transfer_time(self, tensor, src, dst):
        """Seconds to move a tensor: its explicit time times the link's factor, else latency and bandwidth; the latency
        alone where it is handed over."""
        link, file = self.link(src, dst), self.tensors[tensor]
        if self.hands_over:
            return link.get("latency", 0)
        if "transfer" in file:
            return file["transfer"] * link.get("cost_factor", 1)
        bandwidth = link.get("bytes_per_second", 0)
        return link.get("latency", 0) + (file.get("bytes", 0) / bandwidth if bandwidth else 0)

    def destinations(self, tensor):
        """The other devices that need a tensor, each once, in the order in which its consumers name them."""
        home, found = self.device_of[self.tensors[tensor]["producer"]], []
        for consumer in self.tensors[tensor].get("consumers", []):
            if self.device_of[consumer] not in [home, *found]:
                found.append(self.device_of[consumer])
        return found

    def bytes_of(self, tensor):
        """The size of a tensor."""
        return self.tensors[tensor].get("bytes", 0)


class Channels:
    """The channels of all links, each with the moment from which it is free."""

    def __init__(self, problem):
        self.problem, self.free_at = problem, {}

    def arrival(self, tensor, src, dst, now):
        """Takes the channel that is free first, for good, and returns when the tensor arrives."""
        count = self.problem.link(src, dst).get("channels", 1)
        channels = self.free_at.setdefault((src, dst), [0] * count)
        first = channels.index(min(channels))
        channels[first] = max(now, channels[first]) + self.problem.transfer_time(tensor, src, dst)
        return channels[first]


class Simulation:
    """One run, instant by instant (docs/simulator.md, "Equal times")."""

    def __init__(self, problem, rules):
        self.problem, self.rules = problem, rules
        count, devices = len(problem.ops), len(problem.devices)
        self.now = 0
        self.start, self.end = [None] * count, [None] * count
        self.running_ops = []  # Ids.
        self.running_copies = []  # (number in the order of asking, tensor, device, end)
        self.copies_asked = 0
        self.in_flight = []  # (arrival, tensor, device)
        self.free_slots = [device.get("slots", 1) for device in problem.devices]
        self.copy_queue = [[] for _ in range(devices)]  # (number, tensor)
        self.missing = [set(tensors) for tensors in problem.inputs]  # Tensors that are not on the op's device yet.
        self.channels = Channels(problem)
        self.ready = {op for op in range(count) if not self.missing[op]}  # Ready, and not joined under fifo.
        self.queue = [[] for _ in range(devices)]  # Of ops in the order of joining, under fifo.
        self.sequence = ordered_sequences(problem)
        self.transfers = self.transferred_bytes = 0

    def run(self):
        """Goes from instant to instant until nothing is left to happen."""
        while True:
            self.ends_and_arrivals()
            self.one_instant()
            moments = [self.end[op] for op in self.running_ops] + [copy[3] for copy in self.running_copies]
            moments += [arrival for arrival, _, _ in self.in_flight]
            if not moments:
                break
            self.now = min(moments)
        assert None not in self.end, "an op never ran"
        return Result(max(self.end), self.start, self.transfers, self.transferred_bytes)

    def one_instant(self):
        """Steps 1 to 3 until nothing is left to do at this instant."""
        while True:
            self.starts()
            if self.something_ends_now():
                self.ends_and_arrivals()
            elif not self.join():
                return

    def something_ends_now(self):
        """Whether what was started takes no time."""
        return any(self.end[op] == self.now for op in self.running_ops) or any(
            copy[3] == self.now for copy in self.running_copies)

    def ends_and_arrivals(self):
        """Step 1: ops end by id, then copies in the order of asking, then tensors arrive."""
        for op in sorted(op for op in self.running_ops if self.end[op] == self.now):
            self.running_ops.remove(op)
            self.free_slots[self.problem.device_of[op]] += 1
            for tensor in self.problem.outputs[op]:
                self.arrive(tensor, self.problem.device_of[op])
                for device in self.problem.destinations(tensor):
                    self.send(tensor, self.problem.device_of[op], device)
        for copy in sorted(copy for copy in self.running_copies if copy[3] == self.now):
            self.running_copies.remove(copy)
            self.free_slots[copy[2]] += 1
            self.arrive(copy[1], copy[2])
        for flight in [flight for flight in self.in_flight if flight[0] == self.now]:
            self.in_flight.remove(flight)
            self.arrive(flight[1], flight[2])

    def send(self, tensor, src, dst):
        """A tensor leaves for a device: at once, through a channel, or when the receiver copies it."""
        self.transfers += 1
        self.transferred_bytes += self.problem.bytes_of(tensor)
        if self.rules.links in ("free", "shared"):
            self.in_flight.append((self.now + self.problem.transfer_time(tensor, src, dst), tensor, dst))
        elif self.rules.links == "channels":
            self.in_flight.append((self.channels.arrival(tensor, src, dst, self.now), tensor, dst))
        else:
            self.copy_queue[dst].append((self.copies_asked, tensor))
            self.copies_asked += 1

    def arrive(self, tensor, device):
        """A tensor is on a device; ops there that lacked nothing else become ready."""
        for op in self.problem.tensors[tensor].get("consumers", []):
            if self.problem.device_of[op] == device:
                self.missing[op].discard(tensor)
                if not self.missing[op]:
                    self.ready.add(op)

    def starts(self):
        """Step 2: every device with a free slot takes copies, then ops."""
        for device in range(len(self.problem.devices)):
            while self.free_slots[device] and self.copy_queue[device]:
                number, tensor = self.copy_queue[device].pop(0)
                src = self.problem.device_of[self.problem.tensors[tensor]["producer"]]
                self.free_slots[device] -= 1
                self.running_copies.append(
                    (number, tensor, device, self.now + self.problem.transfer_time(tensor, src, device)))
            while self.free_slots[device]:
                op = self.next_op(device)
                if op is None:
                    break
                self.free_slots[device] -= 1
                self.start[op], self.end[op] = self.now, self.now + self.problem.op_time(op)
                self.running_ops.append(op)

    def next_op(self, device):
        """Takes the next op of a device's queue, or returns nothing."""
        if self.rules.discipline == "fifo":
            return self.queue[device].pop(0) if self.queue[device] else None
        here = [op for op in self.ready if self.problem.device_of[op] == device]
        if self.rules.discipline == "ordered":
            here = [op for op in self.sequence[device][:1] if op in here]
        if not here:
            return None
        op = min(here, key=lambda op: (self.problem.rank[op], op))
        self.ready.remove(op)
        self.sequence[device].remove(op)
        return op

    def join(self):
        """Step 3, under fifo: the ready op with the lowest id, over all devices, joins its queue, if there is one."""
        if self.rules.discipline != "fifo" or not self.ready:
            return False
        op = min(self.ready)
        self.ready.remove(op)
        self.queue[self.problem.device_of[op]].append(op)
        return True


def ordered_sequences(problem):
    """The order of each device's ops under `ordered`: by rank, but none before its producers were taken."""
    producers = [{problem.tensors[t]["producer"] for t in tensors} for tensors in problem.inputs]
    by_rank = lambda op: (problem.rank[op], op)
    coming, passed_over, taken = sorted(range(len(problem.ops)), key=by_rank), [], []
    while coming or passed_over:
        released = [op for op in passed_over if producers[op] <= set(taken)]
        if released:
            passed_over.remove(min(released, key=by_rank))
            taken.append(min(released, key=by_rank))
            continue
        op = coming.pop(0)
        (taken if producers[op] <= set(taken) else passed_over).append(op)
    return [[op for op in taken if problem.device_of[op] == device] for device in range(len(problem.devices))]


def bulk_synchronous(problem, rules):
    """Level by level, with a barrier after computing and after communication."""
    level = levels(problem)
    start, now, transfers, moved = [None] * len(problem.ops), 0, 0, 0
    for this in range(max(level) + 1):
        ops = [op for op in range(len(problem.ops)) if level[op] == this]
        slots = [[now] * device.get("slots", 1) for device in problem.devices]
        for op in ops:
            free = slots[problem.device_of[op]]
            first = free.index(min(free))
            start[op] = free[first]
            free[first] += problem.op_time(op)
        now = max(moment for free in slots for moment in free)
        if this == max(level):
            break
        channels, arrivals, receiver_free = Channels(problem), [now], [now] * len(problem.devices)
        for op in ops:
            src = problem.device_of[op]
            for tensor in problem.outputs[op]:
                for dst in problem.destinations(tensor):
                    transfers, moved = transfers + 1, moved + problem.bytes_of(tensor)
                    time = problem.transfer_time(tensor, src, dst)
                    if rules.links in ("free", "shared"):
                        arrivals.append(now + time)
                    elif rules.links == "channels":
                        arrivals.append(channels.arrival(tensor, src, dst, now))
                    else:
                        receiver_free[dst] += time
                        arrivals.append(receiver_free[dst])
        now = max(arrivals)
    return Result(now, start, transfers, moved)


def levels(problem):
    """The longest distance of each op from one without inputs."""
    level = [None] * len(problem.ops)
    while None in level:
        for op in range(len(problem.ops)):
            before = [level[problem.tensors[t]["producer"]] for t in problem.inputs[op]]
            if None not in before:
                level[op] = max((each + 1 for each in before), default=0)
    return level


def simulate(problem, rules):
    """Returns the result of a placement under rules."""
    problem.hands_over = rules.links == "shared"
    return bulk_synchronous(problem, rules) if rules.bulk_synchronous else Simulation(problem, rules).run()
