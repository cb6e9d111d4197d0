"""The alert rules of ``deploy/prometheus``, their state as far as known, and what to do.

A Prometheus that evaluates the rules knows their state. Without one the console says what it sees
by itself, and that it does not know the rest.
"""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.error
import urllib.request
from importlib import resources
from typing import Any, Final

from quorate.console.follower import ANSWER_SECONDS_MAX
from quorate.console.quorum_document import LAG_RECORDS_MAX

PROMETHEUS_SECONDS: Final = 15.0
_ANSWER_BYTES_MAX: Final = 4 << 20

logger = logging.getLogger(__name__)


class AlertStates:
    """What a Prometheus says about our alerts; nothing without one."""

    def __init__(self, prometheus: str = "") -> None:
        self.prometheus = prometheus.rstrip("/")
        self.firing: dict[str, list[str]] | None = None
        """By alert, what each of its instances says; None: not known."""
        self.problem = ""

    async def run(self) -> None:
        """Ask again and again, until cancelled."""
        while self.prometheus:
            try:
                self.firing = _firing(await asyncio.to_thread(self._ask))
                self.problem = ""
            except (OSError, ValueError, KeyError, TypeError) as error:
                if not self.problem:
                    logger.warning("cannot read the alerts of %s: %s", self.prometheus, error)
                self.firing, self.problem = None, str(error)
            await asyncio.sleep(PROMETHEUS_SECONDS)

    def _ask(self) -> Any:
        with urllib.request.urlopen(  # noqa: S310 - the command checked the scheme
            f"{self.prometheus}/api/v1/alerts", timeout=10
        ) as answer:
            return json.loads(answer.read(_ANSWER_BYTES_MAX))


def _firing(answer: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in answer["data"]["alerts"]:
        if each["state"] == "firing":
            summary = str(each.get("annotations", {}).get("summary", ""))
            found.setdefault(str(each["labels"]["alertname"]), []).append(summary)
    return found


def rules() -> list[dict[str, str]]:
    """The rules with their runbooks: made from deploy/prometheus/alerts.yaml and runbooks.md."""
    text = resources.files("quorate.console").joinpath("alerts.json").read_text("utf-8")
    found: list[dict[str, str]] = json.loads(text)
    return found


_RULES: Final = rules()


def own_findings(quorum: dict[str, Any], offline: int) -> dict[str, str]:
    """Return what the console sees by itself: alert -> why it fires, empty if it does not.

    Nothing while no node answers: what was last seen may have changed since.
    """
    if not quorum["is_known"] or quorum["age_seconds"] > ANSWER_SECONDS_MAX:
        return {}
    found = {"QuorateNoLeader": "" if quorum["has_leader"] else "no node leads"}
    found["QuoratePartitionsOffline"] = f"{offline:,} partitions have no leader" if offline else ""
    found["QuorateNotApplying"] = quorum["replay_stopped"]
    if not quorum["is_from_leader"]:
        return found
    voters, replicas = quorum["voters"], [*quorum["voters"], *quorum["observers"]]
    found["QuorateMajorityAtRisk"] = (
        "one more failure stops all writes" if quorum["margin"] <= 0 and len(voters) > 2 else ""
    )
    lagging = [each for each in replicas if each["lag"] > LAG_RECORDS_MAX]
    found["QuorateReplicaLags"] = ", ".join(
        f"replica {each['node_id']} lacks {each['lag']:,} records" for each in lagging
    )
    ahead = quorum["replicas_ahead"]
    found["QuorateObserverStranded"] = f"replicas in a later epoch: {ahead}" if ahead else ""
    disqualified = [str(each["node_id"]) for each in voters if each["is_disqualified"]]
    found["QuorateVoterDisqualified"] = (
        f"voters that never vote: {', '.join(disqualified)}" if disqualified else ""
    )
    return found


def alerts_document(states: AlertStates, own: dict[str, str]) -> dict[str, Any]:
    """Return every rule with its state: ``firing``, ``quiet`` or ``unknown``; firing ones first."""
    rows = []
    for rule in _RULES:
        name = rule["alert"]
        if states.firing is not None:
            seen = states.firing.get(name, [])
            state, why, source = ("firing" if seen else "quiet"), "; ".join(seen), "Prometheus"
        elif name in own:
            state, why, source = ("firing" if own[name] else "quiet"), own[name], "console"
        else:
            state, why, source = "unknown", "", ""
        rows.append({**rule, "state": state, "why": why, "source": source})
    order = {"firing": 0, "unknown": 1, "quiet": 2}
    rows.sort(key=lambda each: (order[each["state"]], each["severity"] != "page", each["alert"]))
    return {"prometheus": states.prometheus, "prometheus_problem": states.problem, "rows": rows}
