"""The sorted list of topic names follows every image, whatever happened between two of them."""

from __future__ import annotations

import random

import pytest

from quorate.services.describe import TopicNames
from quorate.services.sorted_names import SortedNames
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.records import RemoveTopicRecord, TopicRecord
from statemachine.sections import name_changes
from statemachine.sections.name_changes import NameChanges


class _Topics:
    """Creates and deletes topics at random; every topic created gets an id of its own."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._created = 0

    def changed(self, image: MetadataImage, count: int) -> MetadataImage:
        delta = ImageDelta(image)
        for _ in range(count):
            ids = delta.topics.ids
            name = f"topic-{self.rng.randrange(60)}"
            if name in ids:
                delta.replay(RemoveTopicRecord(ids[name]))
            else:
                self._created += 1
                delta.replay(TopicRecord(name, self._created.to_bytes(16, "big")))
        return delta.finish()


def _listed(names: TopicNames, image: MetadataImage) -> list[str]:
    found, has_more = names.after(image, "", 1000)
    assert not has_more
    return list(found)


@pytest.mark.parametrize("seed", range(40))
def test_the_names_are_those_of_the_image(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_changes, "GROUPS_MAX", 8)
    monkeypatch.setattr(name_changes, "NAMES_MAX", 40)
    monkeypatch.setattr("quorate.services.describe._INSERTED_MAX", 5)
    monkeypatch.setattr("quorate.services.sorted_names.CUT_NAMES", 4)
    topics, names = _Topics(seed), TopicNames()
    image = EMPTY_IMAGE
    for _ in range(60):
        for _ in range(topics.rng.choice((0, 1, 1, 3, 12))):
            image = topics.changed(image, topics.rng.choice((0, 1, 2, 9, 50)))
        if topics.rng.random() < 0.1:
            # A checkpoint is loaded: another history, with names that may be others.
            image = topics.changed(EMPTY_IMAGE, topics.rng.randrange(60))
        assert _listed(names, image) == sorted(image.topics.ids), f"seed {seed}"


def test_one_new_name_does_not_sort_all_again() -> None:
    names = TopicNames()
    image = _Topics(1).changed(EMPTY_IMAGE, 40)
    _listed(names, image)
    kept = names._names
    delta = ImageDelta(image)
    delta.replay(TopicRecord("new", b"n" * 16))
    after = delta.finish()
    assert _listed(names, after) == sorted([*image.topics.ids, "new"])
    assert names._names is kept


@pytest.mark.parametrize("seed", range(20))
def test_short_lists_are_one_sorted_list(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.services.sorted_names.CUT_NAMES", 3)
    rng = random.Random(seed)
    expected = {str(number) for number in rng.sample(range(40), rng.choice((0, 1, 20)))}
    names = SortedNames(expected)
    for _ in range(200):
        name = str(rng.randrange(40))
        if rng.random() < 0.5:
            names.add(name)
            expected.add(name)
        else:
            names.discard(name)
            expected.discard(name)
        ordered = sorted(expected)
        assert (list(names), len(names)) == (ordered, len(ordered))
        asked = str(rng.randrange(40))
        assert list(names.after(asked)) == [each for each in ordered if each > asked]
        assert list(names.since(asked)) == [each for each in ordered if each >= asked]
        assert max(map(len, names._lists), default=0) < 6


def test_changes_are_known_for_a_bounded_time() -> None:
    first = NameChanges()
    latest = first
    for number in range(name_changes.GROUPS_MAX):
        latest = latest.followed_by([f"topic-{number}"])
    assert latest.since(first) == {f"topic-{n}" for n in range(name_changes.GROUPS_MAX)}
    assert len(latest.followed_by(["one more"]).latest) <= name_changes.GROUPS_MAX // 2 + 1
    assert latest.followed_by(["one more"]).since(first) is None
    assert latest.followed_by(["one more"]).since(latest) == {"one more"}
    many = latest.followed_by(["name"] * (name_changes.NAMES_MAX + 1))
    assert many.since(latest) is None


def test_an_older_image_and_another_history_are_unknown() -> None:
    first = NameChanges()
    later = first.followed_by(["a"])
    assert first.since(later) is None
    assert NameChanges().followed_by(["a"]).since(first) is None
    assert later.since(later) == set()
