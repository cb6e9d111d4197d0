# KIP-360: a named producer runs twice. The newer process fences the older one, by the epoch that the
# controller gave it, and the older one cannot raise its own epoch.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2)
----
ok

producer old topic=orders id=billing
----
producer 0 epoch 0

send old a
----
a is at 0 in epoch 0

producer new topic=orders id=billing
----
producer 0 epoch 1

send new b
----
b is at 1 in epoch 0

send old c
----
refused: INVALID_PRODUCER_EPOCH: producer 0 with epoch 0 was replaced by producer 0 with epoch 1

repeat old
----
refused: INVALID_PRODUCER_EPOCH: producer 0 with epoch 0 was replaced by producer 0 with epoch 1

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
