"""``python -m tests.simulation``, from the root of the checkout."""

from __future__ import annotations

import sys

from simulation.command_line import main

sys.exit(main())
