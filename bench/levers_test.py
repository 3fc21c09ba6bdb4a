#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that levers.py reports a difference only if every round shows it beyond the noise floor."""

import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from levers import LESS, MORE, NONE_SEEN, noise_floor, verdict  # noqa: E402


class Verdicts(unittest.TestCase):
    def test_the_floor_is_the_same_in_both_directions(self):
        self.assertEqual(noise_floor([0.8, 1.0, 1.1]), 1.25)
        self.assertEqual(noise_floor([0.9, 1.0, 1.25]), 1.25)

    def test_rounds_that_all_lie_beyond_the_floor_differ(self):
        self.assertEqual(verdict([0.70, 0.79], 1.25), LESS)
        self.assertEqual(verdict([1.26, 1.40], 1.25), MORE)

    def test_one_round_within_the_floor_hides_a_difference(self):
        self.assertEqual(verdict([0.70, 0.81], 1.25), NONE_SEEN)
        self.assertEqual(verdict([1.24, 3.00], 1.25), NONE_SEEN)

    def test_rounds_on_both_sides_of_plain_differ_in_nothing(self):
        self.assertEqual(verdict([0.5, 2.0], 1.0), NONE_SEEN)

    def test_a_ratio_on_the_edge_of_the_floor_is_within_it(self):
        self.assertEqual(verdict([1.25], 1.25), NONE_SEEN)
        self.assertEqual(verdict([0.8], 1.25), NONE_SEEN)

    def test_few_levers_that_do_nothing_are_told_to_differ(self):
        self.assertLess(wrong(rounds=3), 0.02)
        self.assertLess(wrong(rounds=5), 0.001)


def wrong(rounds: int, tables: int = 20000) -> float:
    """The fraction of idle levers reported to differ, in tables of simulated log-normal noise."""
    draw = random.Random(1)
    differ = 0
    for _ in range(tables):
        plain, again, idle = ([draw.lognormvariate(0, 0.1) for _ in range(rounds)] for _ in range(3))
        floor = noise_floor([b / a for a, b in zip(plain, again)])
        differ += verdict([c / a for a, c in zip(plain, idle)], floor) != NONE_SEEN
    return differ / tables


if __name__ == "__main__":
    unittest.main()
