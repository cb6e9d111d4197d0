"""Changes of the voter set as rows of the table ``change``, under the entity ``quorum`` voters."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from quorate.client import Client, OffsetOutOfRangeError
from quorate.console.change_rows import ChangeRow
from quorate.console.index import QUORUM_KIND
from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control
from quorum.control_origin import origin_headers
from quorum.control_records import Voters
from quorum.v1.metadata_pb2 import FetchLogRequest

NAME: Final = "voters"


async def find_voter_changes(
    client: Client, offsets: Iterable[int], before: str | None
) -> list[ChangeRow]:
    """Return a row for each control batch at ``offsets`` that holds a voter set.

    ``before`` is the set before the first of them, as the last row has it. Batches that the log no
    longer has are left out.

    Raises:
        ClientError: The leader cannot be asked.
    """
    rows = []
    for offset in offsets:
        try:
            answer = await client.fetch_log(FetchLogRequest(offset=offset, max_bytes=1))
        except OffsetOutOfRangeError:
            continue
        for header in scan_batches(answer.records):
            if not header.is_control or header.base_offset != offset:
                continue
            for record in iterate_records(answer.records, header):
                content = decode_control(record)
                if not isinstance(content, Voters):
                    continue
                who = {name: (value or b"").decode() for name, value in origin_headers(content)}
                after = json.dumps(
                    {
                        "voters": [voter.key.id for voter in content.voters],
                        "removed": [key.id for key in content.removed],
                    }
                )
                rows.append(
                    ChangeRow(
                        header.base_offset, header.end_offset, header.epoch, header.max_timestamp,
                        QUORUM_KIND, NAME, type(content).__name__, False,  # noqa: FBT003 - as columns
                        who.get("principal"), None, None, who.get("reason"), before, after,
                    )
                )  # fmt: skip
                before = after
    return rows
