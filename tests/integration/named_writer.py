"""A process of a named writer: it writes the values on its standard input, one a line.

``python -m tests.integration.named_writer ADDRESSES NAME TOPIC`` answers each with a line on its
standard output: ``applied OFFSET``, or the class of the error and its text.
"""

from __future__ import annotations

import sys

from quorate.client import TOPIC, BlockingClient, ClientError


def main(addresses: str, name: str, topic: str) -> None:
    with BlockingClient(addresses.split(","), writer=name, timeout_seconds=60) as client:
        for line in sys.stdin:
            try:
                applied = client.set_config(TOPIC, topic, "retention.ms", line.strip())
                answer = f"applied {applied.offset}"
            except ClientError as error:
                answer = f"{type(error).__name__} {error}"
            print(answer, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
