"""SIGHUP: read the configuration again, and take over what can change while the node runs."""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorate.config.load import LoadedConfig
from quorate.logs import set_level
from quorum.errors import ConfigError

RELOADED = "logging.level"
"""The one setting that takes effect. Certificate files need no signal: they are read again
when they change."""

_log = logging.getLogger(__name__)


class Reload:
    """Call it for every signal. Owned by the event loop; never raises, never stops the node.

    Args:
        running: What the node was started with.
        load: Reads all sources again.
    """

    def __init__(self, running: LoadedConfig, load: Callable[[], LoadedConfig]) -> None:
        self._running = running
        self._load = load

    def __call__(self) -> None:
        """Take over the log level; name the settings that need a restart.

        A configuration with mistakes changes nothing and is reported with all of them.
        """
        try:
            found = self._load()
        except (ConfigError, OSError) as error:
            _log.error("event=reload_refused error=%s", error)
            return
        set_level(found.config.logging.level)
        before = self._running.values
        waiting = [
            key for key, value in found.values.items()
            if value != before.get(key) and key != RELOADED
        ]  # fmt: skip
        _log.warning(
            "event=configuration_reloaded level=%s need_a_restart=%s",
            found.config.logging.level,
            ",".join(waiting) or "none",
        )
