"""The simulator's generator draws the numbers of ``random.Random``."""

from __future__ import annotations

import random

import pytest

from simulation.seeded_random import SeededRandom


def test_seeded_random_draw_what_the_standard_generator_draws() -> None:
    seeded_random, standard = SeededRandom(7), random.Random(7)
    for number in range(2_000):
        low, width = number % 13 - 6, 1 + number * number % 5_000
        assert seeded_random.randint(low, low + width) == standard.randint(low, low + width)
        assert seeded_random.choice(range(width)) == standard.choice(range(width))
        assert seeded_random.randint(low, low) == standard.randint(low, low)
        assert seeded_random.randrange(width) == standard.randrange(width)
        assert seeded_random.random() == standard.random()
    assert seeded_random.getstate() == standard.getstate()


def test_seeded_random_refuse_to_draw_from_nothing() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        SeededRandom(1).randint(2, 1)
    with pytest.raises(IndexError):
        SeededRandom(1).choice(())
