# 279.1: every record is deleted, and the leader changes. The epoch of the record before the log start is
# still known, so a consumer at the log start finds no truncation.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2)
----
ok

append orders a b
----
a is at 0 in epoch 0
b is at 1 in epoch 0

replicate orders
----
ok

consumer audit topic=orders
----
ok

poll audit
----
0 e0 a
1 e0 b

delete orders before=2
----
ok

stop 1
----
ok

fence 1
----
ok

append orders c
----
c is at 2 in epoch 1

poll audit
----
nothing new

poll audit
----
2 e1 c
