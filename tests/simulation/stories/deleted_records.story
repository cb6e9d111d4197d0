# 320.5 and 630: a position below the log start is told so; records that were deleted are never
# skipped in silence.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2)
----
ok

append orders a b c d
----
a is at 0 in epoch 0
b is at 1 in epoch 0
c is at 2 in epoch 0
d is at 3 in epoch 0

replicate orders
----
ok

consumer slow topic=orders reset=earliest
----
ok

consumer strict topic=orders
----
ok

delete orders before=3
----
ok

poll slow
----
records below 3 are deleted; goes on there

poll slow
----
3 e0 d

poll strict
----
OffsetOutOfRangeError: OFFSET_OUT_OF_RANGE: offset 0 is outside [3, 4]
