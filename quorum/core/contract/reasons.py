"""Why things happened, as enums: tests compare members, logs and scenarios print their values.

What differs from case to case (an offset, an epoch) is in the ``detail`` beside a member.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from quorum.types import NO_NODE, NodeId
from quorum.values import value


class RoleChangeReason(StrEnum):
    """Why a node took another role or moved to another epoch."""

    ELECTION_TIMEOUT = "election-timeout"
    """The election timer expired: before a campaign, or before its pre-votes came in."""
    FETCH_TIMEOUT = "fetch-timeout"
    """The leader has answered no Fetch within the fetch timeout."""
    LEADER_GONE = "leader-gone"
    """The leader's process has ended, or it announced that it no longer leads."""
    CAMPAIGN_REQUESTED = "campaign-requested"
    """The leader asked this voter to take over."""
    PRE_VOTE_WON = "pre-vote-won"
    PRE_VOTE_LOST = "pre-vote-lost"
    VOTE_WON = "vote-won"
    VOTE_TIMEOUT = "vote-timeout"
    """The candidate was not elected in time."""
    CAMPAIGN_OBSTACLE = "campaign-obstacle"
    """``CampaignObstacle`` came up during the campaign."""
    VOTE_REQUEST = "vote-request"
    """A candidate's request has a later epoch."""
    VOTE_GRANTED = "vote-granted"
    """This node granted its vote."""
    BEGIN_QUORUM_EPOCH = "begin-quorum-epoch"
    """A leader announced itself."""
    END_QUORUM_EPOCH = "end-quorum-epoch"
    """A leader announced its resignation."""
    RESPONSE = "response"
    """A response of a peer names a later epoch, or a leader that was not known."""
    QUORUM_LOST = "quorum-lost"
    """No majority has fetched from this leader for too long."""
    REMOVED = "removed"
    """The leader removed itself from the voters."""
    SHUT_DOWN = "shut-down"
    OBSERVER_STRANDED = "observer-stranded"
    """An observer in a later epoch needs the next one, and there is no other voter."""
    RESIGNATION_REQUESTED = "resignation-requested"
    """The state machine asked its leader to resign: an epoch's first records do not replay."""
    REPLAY_STOPPED = "replay-stopped"
    """The state machine cannot apply a committed record."""
    DISK_STALLED = "disk-stalled"
    LOG_QUARANTINED = "log-quarantined"
    RESIGNED_EPOCH_LEFT = "resigned-epoch-left"
    """A resigned leader's election timer expired without another leader."""


@value
class RoleChangeCause:
    """The reason of a change of role, and the peer whose message caused it, if any."""

    reason: RoleChangeReason
    peer: NodeId = NO_NODE


class VoteRejection(StrEnum):
    """Why a vote or pre-vote request was rejected."""

    DISQUALIFIED = "disqualified"
    """This disk never votes; the detail has what was found out about it."""
    BOOTSTRAP_NOT_AGREED = "bootstrap-not-agreed"
    """This disk is freshly formatted and has not agreed with the other bootstrap voters."""
    LOG_QUARANTINED = "log-quarantined"
    DISK_STALLED = "disk-stalled"
    LEADS_EPOCH = "leads-epoch"
    """This node is the leader."""
    ROLE_OF_EPOCH = "role-of-epoch"
    """The role of this node, named in the detail, gives no vote in its epoch."""
    VOTED_FOR_ANOTHER = "voted-for-another"
    EPOCH_HAS_LEADER = "epoch-has-leader"
    LEADER_CONTACT = "leader-contact"
    """This node fetches from a live leader."""
    LOG_BEHIND = "log-behind"
    """The candidate's log ends before this node's."""
    BELOW_VOTE_FLOOR = "below-vote-floor"
    """The candidate's log ends before what this node may once have acknowledged."""
    BOOTSTRAPPING = "bootstrapping"
    """A later epoch; this voter's bootstrap is not complete (rule 4 of ``epoch_claims``)."""
    EPOCH_TOO_FAR = "epoch-too-far"
    """Elections cannot have reached the epoch of the request (rule 2 of ``epoch_claims``)."""
    UNKNOWN_CANDIDATE = "unknown-candidate"
    """The candidate is no known voter, and its log is not ahead (rule 3 of ``epoch_claims``)."""
    NOT_ASKED_AS_VOTER = "not-asked-as-voter"
    """This node knows itself as an observer, and the request does not name it as a voter."""


Rejection: TypeAlias = tuple[VoteRejection, str]
"""The reason and the detail; None in its place stands for a grant."""


class CampaignObstacle(StrEnum):
    """Why a node may not campaign."""

    NOT_A_VOTER = "not-a-voter"
    """It is an observer, or its disk is disqualified."""
    NOT_BOOTSTRAPPED = "not-bootstrapped"
    """The quorum is not bootstrapped; the detail names the voters that are waited for."""
    SHUTTING_DOWN = "shutting-down"
    DISK_STALLED = "disk-stalled"
    LOG_QUARANTINED = "log-quarantined"
    REPLAY_STOPPED = "replay-stopped"
    """The state machine cannot apply a committed record, which the detail describes."""
    EPOCHS_USED_UP = "epochs-used-up"
    """The epoch is the largest there is."""
    BELOW_VOTE_FLOOR = "below-vote-floor"
    """The log has not grown back to what this node may once have acknowledged."""


class IgnoreReason(StrEnum):
    """Why a message was dropped."""

    UNKNOWN_KIND = "unknown-kind"
    """It is no message of this protocol."""
    NEVER_ASKED = "never-asked"
    """It answers no open request: there was none, or it was closed meanwhile."""
    EPOCH_OUT_OF_REACH = "epoch-out-of-reach"
    """No correct replica can have reached its epoch."""
    STALE_EPOCH = "stale-epoch"
    SECOND_LEADER = "second-leader"
    """It names another leader of an epoch than the one that is known."""
    NOT_FROM_LEADER = "not-from-leader"
    """It is an answer of a node that does not lead."""
    RELAY_NOT_USED = "relay-not-used"
    """It is a relay's answer to a node that asked the leader."""
    ROUTE_LOOP = "route-loop"
    """It came through this node."""
    ROUTE_TOO_LONG = "route-too-long"
    """It came through more relays than are allowed."""
    NO_CONTACT_AGE = "no-contact-age"
    """The relay does not report when the leader was last known to lead."""
    BAD_RECORDS = "bad-records"
    """Its records do not follow this log, or are damaged."""
    BAD_DIVERGENCE = "bad-divergence"
    """This log cannot be truncated to its diverging position."""
    BAD_SNAPSHOT = "bad-snapshot"
    """The snapshot that it names does not reach beyond this log."""
    BAD_CHUNK = "bad-chunk"
    """It is not the next chunk of the download, or is damaged."""
    BAD_READ_POSITION = "bad-read-position"
    """It is no read position of the leader's."""


Problem: TypeAlias = tuple[IgnoreReason, str]
"""The reason and the detail; None in its place stands for a message that can be used."""


class DivergenceReason(StrEnum):
    """What raised the suspicion that two logs differ."""

    OTHER_DIGEST = "other-digest"
    """A replica fetched with a digest that is not ours."""
    DIGEST_REFUSED = "digest-refused"
    """The leader refused our digest."""
    COMMITTED_CUT = "committed-cut"
    """The leader asked to truncate committed records."""


class NonVoterReason(StrEnum):
    """Why a disk does not vote although it, or its node's former disk, once did."""

    REMOVED = "removed"
    """This directory id was removed from the voters; only an operator can readmit it."""
    OTHER_DIRECTORY = "other-directory"
    """The node's id is a voter's with another directory id."""


class DisqualifiedReason(StrEnum):
    """Why a disk never votes again with its directory id."""

    EARLIER_RUN = "earlier-run"
    """An earlier process run found the reason; the detail has its message."""
    MET_QUORUM = "met-quorum"
    """Freshly formatted; it met a quorum that was bootstrapped without it."""
    NOT_IN_VOTER_LIST = "not-in-voter-list"
    """Freshly formatted; a bootstrap voter has agreed to a voter list without it."""
    EARLIER_FORMAT = "earlier-format"
    """Freshly formatted; a bootstrap voter has agreed with an earlier format of the directory."""
    ROLLED_BACK = "rolled-back"
    """The leader saw it acknowledge records that it does not have."""
    FORMATTED_ANEW = "formatted-anew"
    """A majority's log has nothing in common with its log."""
