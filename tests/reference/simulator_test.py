#!/usr/bin/env python3
"""The reference simulator on cases whose times are derived by hand. Usage: simulator_test.py"""
import unittest

from simulator import Problem, Rules, simulate


def problem(times, tensors, assignment, priority=None, devices=2, **links):
    """Devices of one slot; tensors are (producer, transfer time, consumers)."""
    graph = {"ops": [{"times": {"*": time}} for time in times],
             "tensors": [{"producer": p, "transfer": t, "consumers": c} for p, t, c in tensors]}
    machine = {"devices": [{"name": f"d{i}", "type": "gpu"} for i in range(devices)], "links": {"default": links}}
    return Problem(graph, machine, assignment, priority)


class Reference(unittest.TestCase):
    def test_lets_an_op_made_ready_by_a_zero_time_op_go_by_its_id(self):
        # z ends at 0 and makes b ready, whose id is lower than c's: b 0 to 10, moved until 15, d 15 to 16; c 10 to 13.
        for links in ("free", "channels", "receiver"):
            found = simulate(problem([0, 10, 3, 1], [(0, 0, [1]), (1, 5, [3])], [0, 0, 0, 1]), Rules("fifo", links))
            self.assertEqual((found.start, found.makespan), ([0, 0, 10, 15], 16))

    def test_lets_transfers_wait_for_their_channel(self):
        # Both tensors leave at 1 over one channel: they arrive at 3 and 5. Over two channels both arrive at 3.
        both = [(0, 2, [1]), (0, 2, [2])]
        self.assertEqual(simulate(problem([1, 0, 0], both, [0, 1, 1]), Rules("fifo", "channels")).start, [0, 3, 5])
        two = problem([1, 0, 0], both, [0, 1, 1], channels=2)
        self.assertEqual(simulate(two, Rules("fifo", "channels")).start, [0, 3, 3])
        self.assertEqual(simulate(problem([1, 0, 0], both, [0, 1, 1]), Rules()).start, [0, 3, 3])

    def test_lets_a_receiver_copy_between_two_of_its_ops(self):
        # Device 1 runs op 1 until 4; the tensor of op 0 was asked for at 1 and is copied from 4 to 6, before op 2.
        case = problem([1, 4, 3, 1], [(0, 2, [3])], [0, 1, 1, 1])
        self.assertEqual(simulate(case, Rules("fifo", "receiver")).start, [0, 0, 6, 9])

    def test_moves_a_tensor_once_per_destination(self):
        found = simulate(problem([1, 1, 1], [(0, 2, [1, 2])], [0, 1, 1]), Rules())
        self.assertEqual((found.transfers, found.makespan), (1, 5))

    def test_runs_the_lowest_rank_first_and_waits_only_if_ordered(self):
        # Op 2 has the lowest rank but arrives at 3. By priority device 1 runs op 1 (0 to 5) first; ordered, it waits.
        case = lambda: problem([1, 5, 1], [(0, 2, [2])], [0, 1, 1], [0, 2, 1])
        self.assertEqual(simulate(case(), Rules("priority")).start, [0, 0, 5])
        self.assertEqual(simulate(case(), Rules("ordered")).start, [0, 4, 3])

    def test_reads_an_impossible_order_as_soon_as_possible(self):
        # Rank asks for op 1 before its producer 0; the sequence is 0, 1, 2: op 1 follows its producer at once.
        case = problem([1, 1, 1], [(0, 0, [1])], [0, 0, 0], [1, 0, 2])
        self.assertEqual(simulate(case, Rules("ordered")).start, [0, 1, 2])

    def test_has_barriers_if_bulk_synchronous(self):
        # Level 0: op 0 until 1, op 1 until 4; the tensor moves from 4 to 6; level 1: op 2 from 6 to 7.
        found = simulate(problem([1, 4, 1], [(0, 2, [2])], [0, 1, 1]), Rules(bulk_synchronous=True))
        self.assertEqual((found.start, found.makespan), ([0, 0, 6], 7))


if __name__ == "__main__":
    unittest.main()
