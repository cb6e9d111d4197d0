"""Every code and every error class has its place in the one table."""

from __future__ import annotations

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo

import quorum.errors
from quorate.cli.exits import exit_for_code
from quorate.client.errors import (
    LogTruncationError,
    NotServedError,
    OffsetOutOfRangeError,
    OutcomeUnknownError,
    RefusedError,
    UnavailableError,
    WatchLaggedError,
    code_name,
    code_number,
    from_rpc,
)
from quorate.services.errors import (
    CODE_OF_ERROR,
    RequestRefusedError,
    code_of,
    rich_status,
    status_of,
)
from quorum.errors import (
    CommandError,
    DiskFullError,
    ErrorCode,
    QuorateError,
    StorageError,
)
from quorum.transport.answers import DETAILS_KEY
from quorum.v1.errors_pb2 import DivergenceHint, LeaderHint, OffsetBounds


def all_error_classes() -> list[type[QuorateError]]:
    found, queue = [], [QuorateError]
    while queue:
        kind = queue.pop()
        if kind.__module__ == quorum.errors.__name__:
            found.append(kind)
        queue += kind.__subclasses__()
    return found


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_has_a_status_an_exit_and_the_same_name_for_clients(code):
    assert exit_for_code(code).name == code.exit
    assert code_name(code) == code.name
    assert code_number(code.name) == code
    assert (grpc.StatusCode[code.status] is grpc.StatusCode.OK) == (code is ErrorCode.NONE)


@pytest.mark.parametrize("kind", all_error_classes())
def test_every_error_class_has_a_code(kind):
    assert kind is CommandError or kind in CODE_OF_ERROR


def test_the_table_names_nothing_that_does_not_exist():
    assert set(CODE_OF_ERROR) <= set(all_error_classes())


def test_a_class_that_is_not_listed_takes_the_code_of_its_base():
    class NewError(DiskFullError):
        pass

    assert code_of(NewError("x")) is ErrorCode.RESOURCE_EXHAUSTED


def test_not_leader_is_unavailable_only_without_a_known_leader():
    hint = LeaderHint(leader_id=2, leader_epoch=3)
    code = ErrorCode.NOT_CONTROLLER
    assert status_of(code, (hint,)) is grpc.StatusCode.FAILED_PRECONDITION
    assert status_of(code, (LeaderHint(leader_id=-1),)) is grpc.StatusCode.UNAVAILABLE
    assert status_of(code) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_a_status_carries_reason_domain_and_when_to_retry(code):
    status = rich_status(CommandError(code, "words"))
    info, retry = ErrorInfo(), RetryInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain, status.message) == (code.name, "quorate", "words")
    assert info.metadata["error_code"] == str(int(code))
    has_retry = any(detail.Unpack(retry) for detail in status.details)
    assert has_retry == code.is_retriable


def test_paths_of_the_server_do_not_leave_it():
    assert "/secret" not in rich_status(StorageError("broken", "/secret/file")).message


def rpc_error(error: QuorateError) -> grpc.aio.AioRpcError:
    status = rich_status(error)
    by_number = {code.value[0]: code for code in grpc.StatusCode}
    trailing = grpc.aio.Metadata((DETAILS_KEY, status.SerializeToString()))
    return grpc.aio.AioRpcError(
        by_number[status.code], grpc.aio.Metadata(), trailing, details=status.message
    )


@pytest.mark.parametrize(
    ("code", "details", "kind"),
    [
        (ErrorCode.TOPIC_ALREADY_EXISTS, (), RefusedError),
        (ErrorCode.OUTCOME_UNKNOWN, (), OutcomeUnknownError),
        (ErrorCode.OFFSET_OUT_OF_RANGE, (OffsetBounds(),), OffsetOutOfRangeError),
        (ErrorCode.OFFSET_OUT_OF_RANGE, (DivergenceHint(offset=3),), LogTruncationError),
        (ErrorCode.RESOURCE_EXHAUSTED, (OffsetBounds(resume_offset=7),), WatchLaggedError),
        (ErrorCode.RESOURCE_EXHAUSTED, (), RefusedError),
    ],
)
def test_clients_decode_the_errors_of_services(code, details, kind):
    error = from_rpc(rpc_error(RequestRefusedError(code, "words", details)))
    assert type(error) is kind
    assert "words" in str(error)


def test_a_leader_hint_survives():
    hint = LeaderHint(leader_id=2, leader_epoch=3, address="there:1")
    error = from_rpc(rpc_error(RequestRefusedError(ErrorCode.NOT_CONTROLLER, "", (hint,))))
    assert isinstance(error, RefusedError)
    assert error.leader.to_message() == hint


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, UnavailableError),
        (grpc.StatusCode.UNIMPLEMENTED, NotServedError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, RefusedError),
    ],
)
def test_errors_of_grpc_itself_are_distinguished(code, kind):
    plain = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details="x")
    assert type(from_rpc(plain)) is kind
    broken = grpc.aio.Metadata((DETAILS_KEY, b"\xff\xff"))
    garbled = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), broken, details="x")
    assert type(from_rpc(garbled)) is kind
