"""``BlockingClient``: the client for programs without an event loop.

    with BlockingClient(["node1:9093", "node2:9093"]) as client:
        client.set_config(TOPIC, "orders", "retention.ms", "3600000")

It runs a ``Client`` on an event loop in a thread of its own. Each method blocks until the
``Client`` method of its name has ended: same arguments, results and errors.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from quorate.client.batches import LogRecord
from quorate.client.client import Client
from quorate.client.log_calls import LogState
from quorate.client.log_consumer import LogConsumer
from quorate.client.watch import Watch, WatchEvent
from quorum.log_position import LogPosition

P = ParamSpec("P")
Result = TypeVar("Result")


def _blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[BlockingClient, P], Result]:
    @functools.wraps(method)
    def call(client: BlockingClient, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return client.run(lambda: method(client.client, *args, **kwargs))

    return call


class BlockingConsumer:
    """A ``LogConsumer`` whose ``poll`` blocks. For one thread at a time."""

    def __init__(self, owner: BlockingClient, consumer: LogConsumer) -> None:
        self._owner = owner
        self._consumer = consumer

    @property
    def position(self) -> LogPosition | None:
        """As ``LogConsumer.position``."""
        return self._consumer.position

    @property
    def state(self) -> LogState | None:
        """As ``LogConsumer.state``."""
        return self._consumer.state

    @property
    def high_watermark(self) -> int:
        """As ``LogConsumer.high_watermark``."""
        return self._consumer.high_watermark

    def seek(self, offset: int, epoch: int = -1) -> None:
        """As ``LogConsumer.seek``."""
        self._consumer.seek(offset, epoch)

    def seek_to(self, position: LogPosition) -> None:
        """As ``LogConsumer.seek_to``."""
        self._consumer.seek_to(position)

    def poll(self, *, max_wait_ms: int = 500) -> list[LogRecord]:
        """As ``LogConsumer.poll``."""
        return self._owner.run(lambda: self._consumer.poll(max_wait_ms=max_wait_ms))


class BlockingWatch(Iterator[WatchEvent]):
    """A ``Watch`` whose iteration blocks. For one thread at a time."""

    def __init__(self, owner: BlockingClient, watch: Watch) -> None:
        self._watch = watch
        self._events = _events(owner, watch)

    @property
    def position(self) -> LogPosition | None:
        """As ``Watch.position``: what to store for resuming behind the last event."""
        return self._watch.position

    def __next__(self) -> WatchEvent:
        """Return the next event."""
        return next(self._events)

    def close(self) -> None:
        """End the watch."""
        self._events.close()


def _events(owner: BlockingClient, watch: Watch) -> Generator[WatchEvent]:
    """Yield the events of a watch, and end it with the iteration."""

    async def begin() -> Any:
        return aiter(watch)

    events = owner.run(begin)
    try:
        while True:
            try:
                yield owner.run(lambda: anext(events))
            except StopAsyncIteration:
                return
    finally:
        if not owner.is_closed:
            owner.run(events.aclose)


class BlockingClient:
    """One connection to a cluster. Any thread may call its methods, also several at a time.

    ``options`` are those of ``Client``. Close it, or use it in a ``with`` statement.
    """

    def __init__(self, addresses: Sequence[str], **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="quorate-client", daemon=True
        )
        self._thread.start()
        self._is_closed = False

        async def make() -> Client:
            return Client(addresses, **options)

        try:
            self.client = self.run(make)
        except BaseException:
            self._stop()
            raise

    write = _blocking(Client.write)
    begin_epoch = _blocking(Client.begin_epoch)
    set_config = _blocking(Client.set_config)
    alter_configs = _blocking(Client.alter_configs)
    create_topic = _blocking(Client.create_topic)
    delete_topic = _blocking(Client.delete_topic)
    create_partitions = _blocking(Client.create_partitions)
    alter_partition = _blocking(Client.alter_partition)
    elect_leaders = _blocking(Client.elect_leaders)
    register_broker = _blocking(Client.register_broker)
    heartbeat = _blocking(Client.heartbeat)
    unregister_broker = _blocking(Client.unregister_broker)
    update_features = _blocking(Client.update_features)
    cordon_log_dirs = _blocking(Client.cordon_log_dirs)
    assign_replicas_to_dirs = _blocking(Client.assign_replicas_to_dirs)
    create_acls = _blocking(Client.create_acls)
    delete_acls = _blocking(Client.delete_acls)
    alter_user_scram_credentials = _blocking(Client.alter_user_scram_credentials)
    commit_position = _blocking(Client.commit_position)
    fetch_positions = _blocking(Client.fetch_positions)
    allocate_producer_ids = _blocking(Client.allocate_producer_ids)
    init_producer_id = _blocking(Client.init_producer_id)
    list_topics = _blocking(Client.list_topics)
    describe_topics = _blocking(Client.describe_topics)
    describe_configs = _blocking(Client.describe_configs)
    describe_cluster = _blocking(Client.describe_cluster)
    describe_quorum = _blocking(Client.describe_quorum)
    describe_features = _blocking(Client.describe_features)
    describe_acls = _blocking(Client.describe_acls)
    describe_user_scram_credentials = _blocking(Client.describe_user_scram_credentials)
    describe_image = _blocking(Client.describe_image)
    delete_records = _blocking(Client.delete_records)
    list_offsets = _blocking(Client.list_offsets)
    offset_for_leader_epoch = _blocking(Client.offset_for_leader_epoch)
    fetch_log = _blocking(Client.fetch_log)
    create_snapshot = _blocking(Client.create_snapshot)
    transfer_leadership = _blocking(Client.transfer_leadership)
    add_voter = _blocking(Client.add_voter)
    remove_voter = _blocking(Client.remove_voter)
    update_voter = _blocking(Client.update_voter)

    @property
    def leader(self) -> str | None:
        """Last known address of the leader."""
        return self.client.leader

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._is_closed

    def watch(self, **options: Any) -> BlockingWatch:
        """Return the events of ``Client.watch``, and their position; closing it ends the watch."""

        async def make() -> Watch:
            return self.client.watch(**options)

        return BlockingWatch(self, self.run(make))

    def consumer(self, **options: Any) -> BlockingConsumer:
        """Return a reader of the log's records; ``options`` are those of ``Client.consumer``."""

        async def make() -> LogConsumer:
            return self.client.consumer(**options)

        return BlockingConsumer(self, self.run(make))

    def run(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run ``work()`` on the client's loop and wait for its result.

        An interrupted wait (Ctrl-C) cancels the work.

        Raises:
            RuntimeError: The client is closed, or this is the client's own thread.
        """
        if self._is_closed or threading.current_thread() is self._thread:
            raise RuntimeError("the client is closed, or called from its own event loop")

        async def await_work() -> Result:
            return await work()

        future = asyncio.run_coroutine_threadsafe(await_work(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End all calls and the thread. Calling it again does nothing."""
        if self._is_closed:
            return
        try:
            self.run(self.client.close)
        finally:
            self._stop()

    def _stop(self) -> None:
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
