"""What is mutated, and which tests must fail."""

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
"""Limit of the second stage per mutant; a mutant not killed by then survives."""
KILLED = ("killed", "timeout", "crashed")
TEST_FACTOR = 10
TEST_CPU_SECONDS = 2.0
"""A test that takes ten times its usual processor time plus this much counts as endless."""
WALL_FACTOR = 20
"""A mutant that reports nothing for this many times its processor limit, in wall-clock time, and
used no processor time meanwhile, is unknown and is tried once more."""
CONTROL_TESTS = 50
"""Number of tests that run with unchanged code, in a mutant's process, before the first mutant."""
MEMORY_BYTES = 2 << 30
"""Memory limit above the campaign's at its start; ends mutants that append for ever."""
