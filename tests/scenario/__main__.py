"""``python -m tests.scenario [--rewrite] FILE...``, from the root of the checkout."""

from __future__ import annotations

from quorate.sim.scenario.command_line import main

main()
