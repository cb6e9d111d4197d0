"""send 9->1 Fetch epoch=1 offset=3 last_epoch=1 [wait=0] [cluster=other]
send 9->1 FetchSnapshot epoch=1 snapshot=5/1 position=0 [bytes=100]
send 2->1 Vote epoch=2 last=5/1        (or PreVote)
send 2->1 BeginQuorumEpoch epoch=2     (or EndQuorumEpoch)

Give node 1 a request made up by the script, as if from node 9 (-1 for a plain consumer), cut
links or not. The answer is printed and delivered to nobody.
"""

from __future__ import annotations

from quorum.core.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    VoteRequest,
)
from quorum.types import NO_NODE, OffsetAndEpoch, ReplicaKey
from tests.scenario.grammar import Arguments, ScenarioError
from tests.scenario.member import CLUSTER_ID, key_of
from tests.scenario.world import World


def run(world: World, args: Arguments) -> None:
    sender_text, arrow, to_text = args.word("a link such as 9->1").rpartition("->")
    kind = args.word("a message type")
    if not arrow:
        raise ScenarioError("send needs a link such as 9->1")
    sender, to = args.number_in("a node", sender_text), args.number_in("a node", to_text)
    replica = world.running(to).replica
    world.injected += 1
    request = _request(kind, world.injected, sender, to, args)
    args.finish()

    def receive() -> None:
        if replica is not None:
            replica.receive(sender, request)

    world.step(to, receive)


def _request(kind: str, request_id: int, sender: int, to: int, args: Arguments) -> Request:
    cluster = args.text("cluster", CLUSTER_ID)
    replica = key_of(sender) if sender >= 0 else ReplicaKey(NO_NODE)
    epoch = args.number("epoch")
    match kind:
        case "Fetch":
            return FetchRequest(
                request_id,
                cluster,
                replica,
                epoch,
                args.number("offset"),
                args.number("last_epoch"),
                args.number("hw", -1),
                args.number("wait", 0),
            )
        case "FetchSnapshot":
            return FetchSnapshotRequest(
                request_id,
                cluster,
                replica,
                epoch,
                _position(args, "snapshot"),
                args.number("position"),
                args.number("bytes", 1 << 20),
            )
        case "Vote" | "PreVote":
            return VoteRequest(
                request_id,
                cluster,
                replica,
                key_of(args.number("voter", to)),
                epoch,
                _position(args, "last"),
                pre_vote=kind == "PreVote",
            )
        case "BeginQuorumEpoch":
            return BeginQuorumEpochRequest(request_id, cluster, key_of(to), replica, epoch)
        case "EndQuorumEpoch":
            return EndQuorumEpochRequest(request_id, cluster, replica, epoch)
    raise ScenarioError(f"send: no request is called {kind}")


def _position(args: Arguments, key: str) -> OffsetAndEpoch:
    offset, slash, epoch = args.text(key).partition("/")
    if not slash:
        raise ScenarioError(f"{args.name} needs {key}= with a position such as 5/1")
    return OffsetAndEpoch(args.number_in("an offset", offset), args.number_in("an epoch", epoch))
