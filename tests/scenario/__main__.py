"""``python -m tests.scenario [--rewrite] FILE...``, from the root of the checkout."""

from __future__ import annotations

from simulation.scenario.command_line import main

main()
