"""Chance of a run is that of ``random.Random``, number for number."""

from __future__ import annotations

import random

import pytest

from simulation.dice import Dice


def test_dice_draw_what_the_standard_generator_draws() -> None:
    dice, standard = Dice(7), random.Random(7)
    for number in range(2_000):
        low, width = number % 13 - 6, 1 + number * number % 5_000
        assert dice.randint(low, low + width) == standard.randint(low, low + width)
        assert dice.choice(range(width)) == standard.choice(range(width))
        assert dice.randint(low, low) == standard.randint(low, low)
        assert dice.randrange(width) == standard.randrange(width)
        assert dice.random() == standard.random()
    assert dice.getstate() == standard.getstate()


def test_dice_refuse_to_draw_from_nothing() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        Dice(1).randint(2, 1)
    with pytest.raises(IndexError):
        Dice(1).choice(())
