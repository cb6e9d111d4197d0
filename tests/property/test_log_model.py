"""The log against a list, under random operations, restarts and crashes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.types import OffsetAndEpoch
from simulation.memory_filesystem import KEEP_ALL, LOSE_ALL, TORN_TAIL, CrashMode
from tests.support.log_builder import LogBench, contents, make_batch
from tests.support.log_model import LogModel

MODES = [LOSE_ALL, TORN_TAIL, KEEP_ALL, CrashMode(keep_writes=1.0, keep_names=1.0)]
batches = st.lists(
    st.tuples(
        st.integers(0, 2), st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=4)
    ),
    min_size=1,
    max_size=6,
)


class LogMachine(RuleBasedStateMachine):
    """Every rule does the same to a log of tiny segments and to ``LogModel``."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = LogBench(segment_bytes=700, index_interval_bytes=200, scan_bytes=300)
        self.model = LogModel()
        self.epoch = 1
        self.digests: dict[int, bytes] = {0: EMPTY_LOG_DIGEST}

    @rule(groups=batches)
    def append(self, groups):
        base = offset = self.model.end.offset
        data, described, digest = b"", [], self.digests.get(base, b"")
        for raise_by, values in groups:
            self.epoch += raise_by
            batch = make_batch(offset, self.epoch, values)
            offset += len(values)
            digest = fold(digest, batch) if digest else b""
            self.digests[offset] = digest
            described.append((self.epoch, values))
            data += batch
        self.bench.log.append(data, base_offset=base, end_offset=offset)
        self.model = self.model.appended(described)

    @rule()
    def flush(self):
        self.bench.log.flush()
        self.model = self.model.flush()

    @rule(data=st.data())
    def store_high_watermark(self, data):
        low = max(self.bench.log.high_watermark, self.model.start.offset)
        offset = data.draw(st.integers(low, max(low, self.model.flushed)))
        self.bench.log.store_high_watermark(offset)

    @rule(data=st.data())
    def truncate(self, data):
        choices = [o for o in self.model.boundaries if o >= self.bench.log.high_watermark]
        if not choices:
            return
        end_offset = data.draw(st.sampled_from(choices))
        if end_offset < self.model.end.offset:
            self.bench.log.truncate_to(end_offset)
            self.model = self.model.truncated(end_offset)
            self.epoch += 1

    @rule(data=st.data())
    def advance_start(self, data):
        offset = data.draw(st.sampled_from(self.model.boundaries))
        if offset <= self.model.start.offset:
            return
        start = OffsetAndEpoch(offset, self.model.epoch_before(offset))
        self.take_snapshot(start)
        self.bench.log.advance_start(start)
        self.model = self.model.advanced(start)

    @rule(ahead=st.integers(1, 30), has_digest=st.booleans())
    def replace(self, ahead, has_digest):
        self.epoch += 1
        snapshot_id = OffsetAndEpoch(self.model.end.offset + ahead, self.epoch)
        self.take_snapshot(snapshot_id)
        digest = b"%016d" % snapshot_id.offset if has_digest else b""
        self.bench.log.replace_with(snapshot_id, digest=digest)
        self.digests[snapshot_id.offset] = digest
        self.model = self.model.replaced(snapshot_id)

    def take_snapshot(self, snapshot_id):
        self.bench.snapshots.append(snapshot_id)
        self.model = self.model.with_snapshot(snapshot_id)

    @rule()
    def restart(self):
        self.bench.log.close()
        self.bench.open()
        self.model = self.model.flush()
        assert self.bench.report.torn_bytes == 0

    @rule(mode=st.sampled_from(MODES), seed=st.integers(0, 1000))
    def crash(self, mode, seed):
        expected = self.model
        self.bench.reopen(mode, seed)
        log = self.bench.log
        found = LogModel(start=log.start, records=tuple(contents(log)))
        assert expected.allows(found), (expected, found)
        # What survived is durable from here on.
        if found.start != expected.start:
            self.model = expected.replaced(found.start)
            self.digests[found.start.offset] = b""
        else:
            self.model = expected.truncated(found.end.offset)
        self.epoch += 1

    @precondition(lambda self: self.model.records)
    @rule(data=st.data())
    def read(self, data):
        start, end = self.model.start.offset, self.model.end.offset
        offset = data.draw(st.integers(start, end - 1))
        limit = data.draw(st.integers(offset, end))
        got = self.bench.log.read(offset, data.draw(st.integers(1, 900)), end_offset=limit)
        first_end = next(boundary for boundary in self.model.boundaries if boundary > offset)
        assert bool(got) == (first_end <= limit)

    @invariant()
    def log_is_the_model(self):
        log = self.bench.log
        assert log.start == self.model.start
        assert log.end == self.model.end
        assert log.epochs == self.model.epochs
        assert contents(log, max_bytes=400) == list(self.model.records)

    @invariant()
    def digests_are_those_of_the_bytes(self):
        log = self.bench.log
        for offset in self.model.boundaries:
            assert log.digest_at(offset) == self.digests[offset]


LogMachine.TestCase.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestLogModel = LogMachine.TestCase
