"""Broker sessions: heartbeats, the stalest session, and replacement."""

from __future__ import annotations

from statemachine.sessions import BrokerGeneration, BrokerSessions, SessionUpdate


def test_a_session_lasts_exactly_its_timeout():
    sessions = BrokerSessions(100)
    sessions.touch(1, 5, 0)
    assert sessions.is_valid(1, 5, 99)
    assert not sessions.is_valid(1, 5, 100)
    assert not sessions.is_valid(1, 6, 0)
    assert sessions.stalest(99) is None
    assert sessions.stalest(100) == BrokerGeneration(1, 5)
    assert sessions.next_expiry_ms() == 100


def test_the_longest_silent_comes_first_however_they_came():
    sessions = BrokerSessions(100)
    for broker in (1, 2, 3):
        sessions.touch(broker, 5, broker)
    sessions.touch(1, 5, 50)
    assert sessions.stalest(102) == BrokerGeneration(2, 5)
    sessions.end(2, 5)
    assert sessions.stalest(102) is None
    assert sessions.stalest(103) == BrokerGeneration(3, 5)


def test_a_new_incarnation_replaces_the_old_one_and_its_session():
    sessions = BrokerSessions(100)
    sessions.update(SessionUpdate(1, 5, 77, 70), 0)
    assert sessions.get(1, 5).metadata_offset == 77
    sessions.touch(1, 6, 10)
    assert sessions.get(1, 5) is None
    assert sessions.get(1, 6).metadata_offset == -1
    sessions.end(1, 5)
    assert len(sessions) == 1


def test_a_broker_that_shuts_down_leaves_no_session():
    sessions = BrokerSessions(100)
    sessions.touch(1, 5, 0)
    sessions.update(SessionUpdate(1, 5, 77, None, is_over=True), 10)
    assert not sessions.is_valid(1, 5, 10)
    assert sessions.next_expiry_ms() is None


def test_a_new_leadership_term_forgets_and_gives_fresh_sessions():
    sessions = BrokerSessions(100)
    sessions.touch(1, 5, 0)
    sessions.reset([BrokerGeneration(2, 9)], 1_000)
    assert sessions.get(1, 5) is None
    assert sessions.is_valid(2, 9, 1_099)


def test_a_registration_lies_at_its_epoch_unless_epochs_run_ahead_of_the_log():
    """Behind an import epochs may be higher than any offset for a long time."""
    sessions = BrokerSessions()
    assert sessions.registration_offset(1, 50) == 50
    sessions.reset((), 0, leadership_term_offset=30)
    assert sessions.registration_offset(1, 20) == 20
    assert sessions.registration_offset(1, 5_000) == 30
    sessions.note_registration(1, 5_001, 41)
    sessions.note_registration(1, 5_001, 45)
    assert sessions.registration_offset(1, 5_001) == 41
    assert sessions.registration_offset(1, 5_000) == 5_000
    sessions.reset((), 0, leadership_term_offset=60)
    assert sessions.registration_offset(1, 5_001) == 60
