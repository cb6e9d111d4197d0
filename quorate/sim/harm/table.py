"""Every act of harm by its name. Profiles weigh them; lanes count those that happened."""

from __future__ import annotations

from collections.abc import Callable

from quorate.sim.harm import disks, identities, links, processes, relays, times, voters
from quorate.sim.harm.site import Site

ACTS: dict[str, Callable[[Site], bool]] = {
    "crash": processes.crash,
    "crash-leader": processes.crash_leader,
    "crash-all": processes.crash_all,
    "crash-loop": processes.crash_loop,
    "power-in-call": processes.power_in_call,
    "power-in-recovery": processes.power_in_recovery,
    "start": processes.start,
    "shut-down": processes.shut_down,
    "pause": processes.pause,
    "resign": processes.resign,
    "transfer": processes.transfer,
    "change-voters": voters.change_voters,
    "checkpoint": processes.checkpoint,
    "crash-relay": relays.crash_relay,
    "pause-relay": relays.pause_relay,
    "isolate-relay": relays.isolate_relay,
    "move-observer": relays.move_observer,
    "partition": links.partition,
    "isolate-leader": links.isolate_leader,
    "majority-ring": links.majority_ring,
    "flap": links.flap,
    "slow-link": links.slow_link,
    "mend": links.mend,
    "cut-clients": links.cut_clients,
    "failing-sync": disks.failing_sync,
    "full-disk": disks.full_disk,
    "unreadable": disks.unreadable,
    "hang": disks.hang,
    "slow-disk": disks.slow_disk,
    "rot": disks.rot,
    "forge": disks.forge,
    "rot-running": disks.rot_running,
    "swap": disks.swap,
    "wipe": identities.wipe,
    "reformat": identities.reformat,
    "roll-back": identities.roll_back,
    "clone": identities.clone,
    "wall-step": times.wall_step,
    "strobe": times.strobe,
    "drift": times.drift,
    "jump": times.jump,
}
"""An act returns whether there was anything to do it to."""
