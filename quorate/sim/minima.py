"""The least that must happen in a hundred seeds of each profile, in runs of the usual shape.

About half of what was seen, a third of what is rare: enough to notice that a fault occurs no more,
or that it leads to nothing any more. Every act of a profile has a minimum, and a profile in which
an act would be too rare for one gives it more weight.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.sim.follower_minima import RELAYS, RELAYS_AMONG_OTHERS, WATCHED


def _parse(text: str) -> dict[str, int]:
    """Names and numbers by turns."""
    words = text.split()
    return {name: int(least) for name, least in zip(words[::2], words[1::2], strict=True)}


# Outcomes first, then acts of harm and their kinds.
_TABLE = {
    "default": """
        leaders 224 truncations 19 installs 73 checkpoints 1800 crashes 544 lossy_crashes 168
        duplicates 264 acknowledged 7700 reads 4700 lost 800 duplicated 768 cut 4080 refused 472
        quarantines 25 straggled 1200 cut_from_clients 680 stalls 256 refused_starts 100
        records-harmed 30 hand_overs 10 id_blocks 60
        checkpoint 95 crash 147 crash-all 11 crash-kill 84 crash-leader 20 crash-loop 11
        crash-power 84 crash-reorder 91 crash-torn 98 cut-both-ways 77 cut-clients 36
        cut-one-way 40 drift 10 failed-read 5 failed-sync 12 failed-write 10 failing-sync 24
        flap 25 full-disk 21 hang 31 isolate-leader 25 jump 10 majority-ring 29 mend 55
        partition 100 pause 54 power-in-call 38 power-in-recovery 10 resign 10 rot 51
        rot-checkpoint 2 rot-digest 7 rot-high-watermark 6 rot-leader-epoch-checkpoint 5
        rot-log 1 rot-meta.properties 4 rot-partition.metadata 5 rot-quorum-state 6
        rot-running 219 shut-down 25 slow-disk 26 slow-link 39 start 64 strobe 11 swap 74
        transfer 27 unreadable 22 wall-step 11
    """,
    "network": """
        leaders 200 truncations 55 installs 120 checkpoints 2400 duplicates 320
        acknowledged 8500 reads 5400 lost 1000 duplicated 940 cut 5200 straggled 1500
        cut_from_clients 750 stalls 87 hand_overs 20
        checkpoint 228 cut-both-ways 220 cut-clients 84 cut-one-way 130 flap 70
        isolate-leader 89 majority-ring 68 mend 134 partition 224 pause 75 resign 59
        slow-link 81 transfer 106
    """,
    "crash": """
        leaders 260 truncations 13 installs 60 checkpoints 2000 crashes 800 lossy_crashes 190
        duplicates 110 acknowledged 7800 reads 5600 lost 210 duplicated 290 cut 1200 refused 720
        straggled 470 stalls 96 id_blocks 60
        checkpoint 76 crash 284 crash-all 38 crash-kill 180 crash-leader 52 crash-loop 30
        crash-power 150 crash-reorder 170 crash-torn 150 cut-both-ways 7 cut-one-way 5 mend 10
        partition 20 power-in-call 96 power-in-recovery 38 shut-down 49 start 164
    """,
    "disk": """
        leaders 200 truncations 9 installs 81 checkpoints 1900 crashes 420 lossy_crashes 370
        duplicates 150 acknowledged 8100 reads 7800 lost 210 duplicated 290 refused 91
        straggled 430 stalls 1500
        checkpoint 130 crash 73 crash-kill 12 crash-power 13 crash-reorder 10 crash-torn 10
        failed-read 20 failed-sync 90 failed-write 150 failing-sync 100 full-disk 108 hang 179
        power-in-call 36 slow-disk 141 start 64 unreadable 96
    """,
    "rot": """
        leaders 96 truncations 3 installs 24 checkpoints 1500 crashes 168 lossy_crashes 13
        duplicates 67 acknowledged 4000 reads 5400 lost 168 duplicated 240 refused 216
        quarantines 25 straggled 384 stalls 50 refused_starts 100 records-harmed 40
        voter_changes 10 barred 5
        change-voters 10 checkpoint 158 crash 257 crash-kill 55 crash-leader 32 crash-power 54
        crash-reorder 56 crash-torn 51 reformat 10 rot 133 rot-checkpoint 5 rot-digest 11
        rot-high-watermark 14 rot-leader-epoch-checkpoint 8 rot-log-start 2
        rot-meta.properties 12 rot-partition.metadata 15 rot-quorum-state 10 rot-running 175
        start 44 swap 42 wipe 10
    """,
    "membership": """
        voter_changes 60 leaders 50 crashes 100 acknowledged 2000 hand_overs 10 truncations 10
        installs 30 lossy_crashes 10 cut 300
        change-voters 183 checkpoint 85 crash 88 crash-leader 20 isolate-leader 10 mend 39
        partition 47 resign 13 start 25 transfer 38
    """,
    "clocks": """
        leaders 100 truncations 7 installs 67 checkpoints 2500 crashes 60 lossy_crashes 7
        duplicates 82 acknowledged 8000 reads 5600 lost 220 duplicated 300 cut 1200 refused 90
        straggled 490 stalls 91
        checkpoint 64 crash 43 crash-kill 7 crash-power 5 crash-reorder 10 crash-torn 7
        drift 138 isolate-leader 23 jump 144 mend 10 pause 138 start 10 strobe 123 wall-step 130
    """,
    "detection": """
        leaders 170 truncations 4 installs 58 checkpoints 1500 crashes 630 lossy_crashes 65
        duplicates 110 acknowledged 5900 reads 8500 lost 210 duplicated 280 cut 960 refused 540
        straggled 450 stalls 80 barred 99 found_out 14
        checkpoint 183 crash 388 crash-kill 96 crash-power 92 crash-reorder 90 crash-torn 100
        isolate-leader 86 mend 39 reformat 12 roll-back 194 rolled-back 18 start 138
    """,
    "clones": """
        leaders 100 installs 40 checkpoints 1500 crashes 100 acknowledged 7000 reads 7000
        copies_refused 2000
        checkpoint 50 clone 60 crash 60 crash-leader 10 isolate-leader 10 mend 10 resign 20
        start 25 transfer 15
    """,
    "history": """
        leaders 160  truncations 25  crashes 370  lossy_crashes 80  duplicates 200
        acknowledged 6500  reads 8300  quarantines 20  barred 10
        checkpoint 10  crash 100  crash-all 20  crash-leader 20  forge 25  isolate-leader 10
        mend 10  start 40
    """,
    "garbage": """
        leaders 150 crashes 500 acknowledged 5000 reads 7000
        checkpoint 110 crash 200 crash-all 30 crash-leader 40 crash-loop 20
        garbage-another-cluster 700 garbage-another-disk 50 garbage-damaged 200
        garbage-long-gone 1500 garbage-meaningless 500 garbage-never-asked 800
        garbage-to-come 1500 mend 10 partition 45 power-in-call 70 power-in-recovery 30
        resign 40 shut-down 35 start 120
    """,
    "relays": """
        change-voters 10 checkpoint 40 crash 25 crash-leader 10 isolate-leader 8 mend 20
        partition 30 pause 15 start 5
    """,
    "everything": """
        leaders 272 truncations 20 installs 88 checkpoints 1700 crashes 1200 lossy_crashes 240
        duplicates 256 acknowledged 5900 reads 6400 lost 880 duplicated 800 cut 6080 refused 792
        quarantines 45 straggled 1280 cut_from_clients 1040 stalls 216 refused_starts 250
        records-harmed 60 hand_overs 10 voter_changes 12 barred 10 copies_refused 100
        change-voters 32 checkpoint 184 clone 10 crash 348 crash-all 33 crash-kill 192
        crash-leader 30 crash-loop 39 crash-power 209 crash-reorder 192 crash-torn 209
        cut-both-ways 165 cut-clients 76 cut-one-way 110 drift 35 failed-read 2 failed-sync 16
        failed-write 24 failing-sync 52 flap 56 full-disk 47 hang 58 isolate-leader 25 jump 39
        majority-ring 63 mend 142 partition 210 pause 100 power-in-call 87 power-in-recovery 37
        reformat 10 resign 20 rot 192 rot-checkpoint 6 rot-digest 44 rot-high-watermark 52
        rot-index 1 rot-leader-epoch-checkpoint 32 rot-log 2 rot-log-start 4
        rot-meta.properties 48 rot-partition.metadata 39 rot-quorum-state 45 rot-running 554
        shut-down 50 slow-disk 54 slow-link 79 start 199 strobe 24 swap 267 transfer 24
        unreadable 57 wall-step 38 wipe 10
    """,
}
MINIMA: Mapping[str, Mapping[str, int]] = {
    **{name: {**WATCHED, **_parse(text)} for name, text in _TABLE.items()},
    "relays": {**RELAYS, **_parse(_TABLE["relays"])},
    "everything": {**WATCHED, **RELAYS_AMONG_OTHERS, **_parse(_TABLE["everything"])},
}
