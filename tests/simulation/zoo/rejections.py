"""Helpers of voting bugs: the rejections of one rule become grants."""

from __future__ import annotations

from quorum.core.contract.reasons import Rejection, VoteRejection

BY_LOG = (VoteRejection.LOG_BEHIND, VoteRejection.BELOW_VOTE_FLOOR)
"""The rules that compare the candidate's log."""


def without(rejection: Rejection | None, *forgotten: VoteRejection) -> Rejection | None:
    """Return the rejection, or None (a grant) if its reason is ``forgotten``."""
    return None if rejection is not None and rejection[0] in forgotten else rejection
