"""Measure what ACLs cost: a write with and without them in alternation, and a decision alone.

Prints one JSON object. The share of a check is its processor time, measured alone, in that of a
whole command. The least of all rounds counts, since other work on the machine only adds. Figures
"with" and "without" show the same with more noise. A decision that is not remembered is measured on
the first action of each principal.

    python -m bench.access_cost --acls 10000 --rounds 15
"""

from __future__ import annotations

import argparse
import json
import time

from bench.build_form import print_form
from bench.controller_path import TOPICS, measure
from quorate.services.access import Access, AccessPolicy
from quorate.services.roles import Role
from quorum.transport.node_names import NodeNames
from statemachine.commands import IncrementalAlterConfigs
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.records import AccessControlEntryRecord
from statemachine.sections.acl_index import EMPTY_INDEX, AclOperation, Action, ResourceKind

_CLIENT = "User:app-0.test"
_PEER = "ipv4:10.0.0.1:50000"


def acls(count: int) -> list[AccessControlEntryRecord]:
    """Return ACLs of many principals; one prefix lets the measured client write."""
    found = [
        AccessControlEntryRecord(
            b"\1" * 16, 2, "topic-", 4, _CLIENT, "*", int(AclOperation.ALTER_CONFIGS), 3
        )
    ]
    for number in range(1, count):
        name, pattern = f"topic-{number % TOPICS}", 3 if number % 3 else 4
        who = f"User:app-{number % 1000 + 1}.test"
        identity = number.to_bytes(16, "big")
        found.append(AccessControlEntryRecord(identity, 2, name, pattern, who, "*", 3, 3))
    return found


def decisions(entries: list[AccessControlEntryRecord], policy: AccessPolicy) -> tuple[float, float]:
    """Return the microseconds of a first decision and of a remembered one."""
    index = EMPTY_INDEX.changed(entries, ())
    kind, read = int(ResourceKind.TOPIC), int(AclOperation.READ)
    asked = [
        (f"User:app-{number}.test", Action(kind, f"topic-{number % TOPICS}", read))
        for number in range(1000)
    ]
    took = []
    for _ in range(2):
        began = time.process_time()
        for principal, action in asked:
            policy.allows(index, principal, "10.0.0.1", action)
        took.append((time.process_time() - began) / len(asked) * 1e6)
    return took[0], took[1]


def check_alone(access: Access, image: MetadataImage, count: int) -> float:
    """Return the microseconds of checking one command, as the controller does for each."""
    commands = [
        IncrementalAlterConfigs(2, f"topic-{number % (TOPICS - 1) + 1}", ())
        for number in range(count)
    ]
    began = time.process_time()
    for command in commands:
        access.check_command(image, command)
    return (time.process_time() - began) / count * 1e6


def image_of(entries: list[AccessControlEntryRecord]) -> MetadataImage:
    """Return an image with these ACLs."""
    delta = ImageDelta(EMPTY_IMAGE)
    for entry in entries:
        delta.replay(entry)
    return delta.finish()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acls", type=int, default=10_000)
    parser.add_argument("--commands", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print_form()
    policy = AccessPolicy(NodeNames("node-{id}.test"), frozenset())
    entries = acls(options.acls)
    access = Access(policy, _CLIENT, _PEER, frozenset({Role.CLIENT}))
    image = image_of(entries)
    plain, checked, alone = [], [], []
    for _ in range(options.rounds):
        for found, who in ((plain, None), (checked, access)):
            seconds, succeeded = measure(options.commands, 64, access=who, more=entries)
            if succeeded != options.commands:
                raise SystemExit(f"{options.commands - succeeded} commands were refused")
            found.append(seconds / options.commands * 1e6)
        alone.append(check_alone(access, image, options.commands))
    without, with_acls = min(plain), min(checked)
    first, remembered = decisions(entries, AccessPolicy(NodeNames("node-{id}.test"), frozenset()))
    print(
        json.dumps(
            {
                "acls": options.acls,
                "microseconds_without": round(without, 2),
                "microseconds_with": round(with_acls, 2),
                "microseconds_check": round(min(alone), 2),
                "check_share_percent": round(min(alone) / without * 100, 2),
                "microseconds_first_decision": round(first, 2),
                "microseconds_remembered_decision": round(remembered, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
