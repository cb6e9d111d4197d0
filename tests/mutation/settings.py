"""What is mutated, and which tests have to notice."""

from __future__ import annotations

CORE = "quorum/core"
TESTS = ("tests/unit/core", "tests/scenario/testdata", "tests/property/test_core_wire_rules.py")
"""The first stage: all tests that check the core directly and name the broken rule."""
EXPLORED = (
    "tests/simulation/test_explore.py::test_three_voters_two_epochs_and_one_record_to_the_end",
    "tests/simulation/test_explore.py::test_a_checkpoint_brings_the_voters_of_its_end",
    "tests/simulation/test_explore.py::test_a_model_holds_to_the_end[election]",
)
"""With the seeds of ``simulated``, the second stage: for what survives the first."""
SIMULATED_CPU_SECONDS = 30.0
"""Of the second stage, by mutant; what has not failed until then survives."""
KILLED = ("killed", "timeout", "crashed")
TEST_FACTOR = 10
TEST_CPU_SECONDS = 2.0
"""A test that takes ten times its processor time and this long besides does not end."""
WALL_FACTOR = 20
"""A mutant that says nothing in so many times its processor limit by the clock, and has used no
processor time meanwhile, is unknown and tried once more."""
CONTROL_TESTS = 50
"""Before the first mutant so many tests run in a process like a mutant's, with unchanged code."""
MEMORY_BYTES = 2 << 30
"""Above what the campaign has at its start: mutants that append for ever end early."""
