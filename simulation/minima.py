"""Minima of what must happen in a hundred seeds of each profile, in runs of the usual shape.

Each is half of what was seen in the poorest lane that was run, a third of what is rare (below 60),
a quarter of what is rarer (below 15). That is enough to notice a fault that no longer occurs or no
longer has consequences. Every fault of a profile has a minimum; a profile in which it would be too
rare gives it more weight.
"""

from __future__ import annotations

from collections.abc import Mapping

from simulation.follower_minima import RELAYS, RELAYS_AMONG_OTHERS, WATCHED


def _parse(text: str) -> dict[str, int]:
    """Parse alternating names and numbers."""
    words = text.split()
    return {name: int(least) for name, least in zip(words[::2], words[1::2], strict=True)}


# Outcomes first, then faults and their kinds.
_TABLE = {
    "default": """
        leaders 180 truncations 16 installs 70 checkpoints 1500 crashes 360 lossy_crashes 120
        duplicates 300 acknowledged 5800 reads 9400 quarantines 17 refused_starts 86
        id_blocks 95 leadership_transfers 9 lost 1000 duplicated 920 cut 3900 refused 290 straggled
        1300 cut_from_clients 470 stalls 230
        checkpoint 89 crash 150 crash-all 9 crash-kill 67 crash-leader 15 crash-loop 9
        crash-power 72 crash-reorder 68 crash-torn 68 cut-both-ways 58 cut-clients 32
        cut-one-way 44 drift 8 failed-read 5 failed-sync 12 failed-write 11 failing-sync 16
        flap 19 full-disk 12 hang 18 isolate-leader 16 jump 12 majority-ring 17 heal 60
        partition 100 pause 44 power-in-call 48 power-in-recovery 9 records-damaged 59 resign 13
        corruption 69 corruption-checkpoint 2 corruption-digest 7 corruption-high-watermark 5
        corruption-leader-epoch-checkpoint 3 corruption-log 2 corruption-meta.properties 8
        corruption-partition.metadata 2 corruption-quorum-state 6 corruption-running 170 shut-down
        17 slow-disk 18 slow-link 31 start 80 strobe 13 swap 56 transfer 12 unreadable 12 wall-step
        9
    """,
    "network": """
        leaders 180 truncations 42 installs 78 checkpoints 1900 duplicates 290 acknowledged 5900
        reads 11300 id_blocks 110 leadership_transfers 41 lost 910 duplicated 930 cut 3500 straggled
        1700 cut_from_clients 520 stalls 79
        checkpoint 200 cut-both-ways 120 cut-clients 79 cut-one-way 89 flap 58 isolate-leader 84
        majority-ring 64 heal 140 partition 210 pause 83 resign 58 slow-link 78 transfer 84
    """,
    "crash": """
        leaders 260 truncations 19 installs 60 checkpoints 2000 crashes 750 lossy_crashes 170
        duplicates 200 acknowledged 6400 reads 8500 id_blocks 120 lost 260 duplicated 260
        cut 880 refused 620 straggled 550 stalls 97
        checkpoint 91 crash 320 crash-all 34 crash-kill 150 crash-leader 54 crash-loop 35
        crash-power 150 crash-reorder 150 crash-torn 150 cut-both-ways 10 cut-one-way 7 heal 9
        partition 17 power-in-call 100 power-in-recovery 42 shut-down 56 start 190
    """,
    "interleavings": """
        leaders 370 truncations 110 installs 67 checkpoints 840 crashes 400
        lossy_crashes 57 duplicates 84 acknowledged 1040 reads 4610 lost 5990 duplicated
        6600 cut 1510 refused 730 straggled 12700 cut_from_clients 250 stalls 48
        regressions 130 voter_changes 93 id_blocks 4 strangers 300 strangers_served 14
        producers_left 88 leadership_transfers 49 change-voters 930 checkpoint 190 crash 270
        crash-kill 90 crash-leader 97 crash-power 97 crash-reorder 86 crash-torn 96
        isolate-leader 78 heal 63 resign 110 start 160 transfer 130 watch_changes 7000
    """,
    "disk": """
        leaders 140 truncations 6 installs 64 checkpoints 1800 crashes 260 lossy_crashes 230
        duplicates 170 acknowledged 6300 reads 9700 id_blocks 130 lost 230 duplicated 260
        refused 52 straggled 450 stalls 1300
        checkpoint 110 crash 68 crash-kill 8 crash-power 12 crash-reorder 13 crash-torn 11
        failed-read 38 failed-sync 84 failed-write 100 failing-sync 91 full-disk 79 hang 130
        power-in-call 31 slow-disk 130 start 59 unreadable 79
    """,
    "corruption": """
        leaders 150 truncations 1 installs 81 checkpoints 1900 crashes 510 lossy_crashes 66
        duplicates 200 acknowledged 6000 reads 8200 quarantines 50 refused_starts 420
        voter_changes 14 disqualified 53 id_blocks 130 lost 220 duplicated 250 refused 620
        straggled 460 stalls 97
        change-voters 32 checkpoint 280 crash 460 crash-kill 110 crash-leader 44 crash-power 130
        crash-reorder 120 crash-torn 130 records-damaged 170 reformat 17 corruption 490
        corruption-checkpoint 8 corruption-digest 94 corruption-high-watermark 45
        corruption-leader-epoch-checkpoint 62 corruption-log-start 3 corruption-meta.properties 68
        corruption-partition.metadata 95 corruption-quorum-state 77 corruption-running 550 start 150
        swap 370 wipe 31
    """,
    "files": """
        leaders 290 truncations 22 installs 60 checkpoints 1400 crashes 1200 lossy_crashes 140
        duplicates 180 acknowledged 4700 reads 6600 quarantines 150 refused_starts 130
        id_blocks 95 lost 170 duplicated 240 refused 1100 straggled 370
        checkpoint 150 crash 430 crash-all 180 crash-kill 250 crash-leader 65 crash-power 310
        crash-reorder 310 crash-torn 330 damage-checkpoint 20 damage-digest 45
        damage-files 290 damage-high-watermark 180 damage-high-watermark-copy 170
        damage-leader-epoch-checkpoint 7 damage-log 60 damage-log-start 3
        damage-meta.properties 40 damage-partition.metadata 33 damage-quorum-state 40
        misname-checkpoint 5 records-damaged 560 start 150
    """,
    "membership": """
        leaders 160 truncations 32 installs 61 checkpoints 2000 crashes 100 lossy_crashes 15
        duplicates 280 acknowledged 6500 reads 9700 voter_changes 68 id_blocks 140
        leadership_transfers 16 cut 1200
        change-voters 170 checkpoint 91 crash 83 crash-leader 12 isolate-leader 11 heal 36
        partition 49 resign 16 start 15 transfer 37
    """,
    "clocks": """
        leaders 76 truncations 6 installs 64 checkpoints 2100 crashes 39 lossy_crashes 5
        duplicates 140 acknowledged 6500 reads 8500 id_blocks 140 lost 240 duplicated 270
        cut 640 refused 36 straggled 500 stalls 100
        checkpoint 58 crash 39 crash-kill 2 crash-power 8 crash-reorder 9 crash-torn 5 drift 110
        isolate-leader 18 jump 130 heal 9 pause 130 start 8 strobe 110 wall-step 120
        change-level 90 slow-calls 150
    """,
    "detection": """
        leaders 180 truncations 9 installs 40 checkpoints 1800 crashes 610 lossy_crashes 70
        duplicates 230 acknowledged 5800 reads 8300 disqualified 100 rollbacks_detected 19
        id_blocks 120
        lost 220 duplicated 250 cut 1400 refused 480 straggled 450 stalls 86
        checkpoint 180 crash 380 crash-kill 99 crash-power 92 crash-reorder 91 crash-torn 100
        isolate-leader 92 heal 60 reformat 11 roll-back 190 rolled-back 39 start 140
    """,
    "clones": """
        leaders 130 truncations 5 installs 19 checkpoints 2100 crashes 110 lossy_crashes 8
        duplicates 180 acknowledged 7000 reads 8200 id_blocks 150 leadership_transfers 6
        copies_refused 3100
        checkpoint 61 clone 76 crash 42 crash-leader 14 isolate-leader 12 heal 5 resign 42
        start 34 transfer 17
    """,
    "history": """
        leaders 160 truncations 15 installs 58 checkpoints 1900 crashes 390 lossy_crashes 84
        duplicates 190 acknowledged 6400 reads 8100 quarantines 15 disqualified 13 id_blocks 130
        checkpoint 31 crash 150 crash-all 52 crash-leader 46 forge 17 isolate-leader 7 heal 5
        start 66
    """,
    "garbage": """
        leaders 220 truncations 17 installs 70 checkpoints 1800 crashes 550 lossy_crashes 120
        duplicates 200 acknowledged 5500 reads 7600 id_blocks 108 regressions 12
        checkpoint 130 crash 230 crash-all 30 crash-leader 34 crash-loop 17
        garbage-another-cluster 1000 garbage-another-disk 84 garbage-damaged 350
        garbage-long-gone 2400 garbage-meaningless 970 garbage-never-asked 1400
        garbage-to-come 2200 heal 33 partition 63 power-in-call 69 power-in-recovery 30
        resign 16 shut-down 34 start 100 transfer 16 forge-request 1600
        forged-BeginQuorumEpochRequest 290 forged-ChainDigestRequest 300
        forged-EndQuorumEpochRequest 290 forged-FetchRequest 300 forged-BootstrapRequest 300
        forged-VoteRequest 640 forge-change 200 forged-AddVoterRequest 60
        forged-RemoveVoterRequest 64 forged-UpdateVoterRequest 69 unproven-caller 190
    """,
    "downloads": """
        leaders 170 truncations 13 installs 130 checkpoints 1400 crashes 560 lossy_crashes 110
        duplicates 170 acknowledged 4200 reads 8000
        downloads_resumed 31 resumed_installs 14 downloads_damaged 6
        checkpoint 120 crash 94 crash-downloading 300 crash-kill-downloading 36 crash-leader 69
        crash-power-downloading 6 crash-reorder-downloading 9 crash-torn-downloading 7
        isolate-leader 19 heal 13 corruption-download 12 start 270
    """,
    "releases": """
        leaders 310 truncations 26 installs 26 checkpoints 1600 crashes 430 lossy_crashes 17
        duplicates 170 acknowledged 5500 reads 7700 lost 180 duplicated 270 cut 800 refused 480
        straggled 420 stalls 60 id_blocks 120 leadership_transfers 72
        checkpoint 88 crash 70 crash-kill 17 crash-leader 30 crash-power 20 crash-reorder 20
        crash-torn 17 isolate-leader 28 heal 22 older-release 190 other-codec 190 replay-stopped 16
        resign 60 start 55 transfer 140
    """,
    "relays": """
        truncations 16 checkpoints 2400 lossy_crashes 16 duplicates 230 id_blocks 110
        change-voters 15 checkpoint 83 crash 41 crash-leader 11 isolate-leader 12 heal 74
        partition 57 pause 17 start 17
    """,
    "everything": """
        leaders 210 truncations 13 installs 100 checkpoints 1600 crashes 730 lossy_crashes 180
        duplicates 270 acknowledged 5000 reads 8900 quarantines 52 refused_starts 220
        voter_changes 7 disqualified 36 id_blocks 100 leadership_transfers 12 lost 970 duplicated
        970 cut 3400 refused 640 straggled 1600 cut_from_clients 540 stalls 240 copies_refused 640
        change-voters 43 checkpoint 160 clone 12 crash 300 crash-all 39 crash-kill 140
        crash-leader 19 crash-loop 16 crash-power 130 crash-reorder 140 crash-torn 130
        cut-both-ways 110 cut-clients 75 cut-one-way 90 drift 37 failed-read 12 failed-sync 15
        failed-write 18 failing-sync 39 flap 45 full-disk 34 hang 57 isolate-leader 13 jump 33
        majority-ring 50 heal 100 partition 200 pause 96 power-in-call 81 power-in-recovery 32
        records-damaged 100 reformat 7 resign 14 corruption 190 corruption-checkpoint 5
        corruption-digest 33 corruption-high-watermark 15 corruption-leader-epoch-checkpoint 12
        corruption-log 8 corruption-log-start 1 corruption-meta.properties 30
        corruption-partition.metadata 18 corruption-quorum-state 18 corruption-running 320
        older-release 20 shut-down 48 slow-disk 53 slow-link 63 start 160 strobe 34 swap 150
        transfer 31 unreadable 48 wall-step 17 wipe 8
    """,
}
_ENDINGS = {
    "minority-left-out": 15,
    "left-out-down": 12,
    "left-out-cut": 1,
    "left-out-leader": 1,
}
"""How fault phases end, in every profile; by the profile in which fewest nodes can be spared."""
_EVERYWHERE = {**WATCHED, **_ENDINGS}
MINIMA: Mapping[str, Mapping[str, int]] = {
    **{name: {**_EVERYWHERE, **_parse(text)} for name, text in _TABLE.items()},
    "relays": {**_EVERYWHERE, **RELAYS, **_parse(_TABLE["relays"])},
    "everything": {**_EVERYWHERE, **RELAYS_AMONG_OTHERS, **_parse(_TABLE["everything"])},
}
