# KIP-360: brokers that forget a producer with its last record. To them it was never assigned: UNKNOWN_PRODUCER_ID,
# and may not begin at 0 in the same epoch. Without a name it raises its own epoch and goes on (360.6).

cluster brokers=(1,2) producers=forgotten
----
ok

topic orders replicas=(1,2)
----
ok

producer p topic=orders
----
producer 0 epoch 0

send p a b
----
a is at 0 in epoch 0
b is at 1 in epoch 0

replicate orders
----
ok

delete orders before=2
----
ok

send p c
----
refused: UNKNOWN_PRODUCER_ID: producer 0 was never assigned

# c has no outcome. The program decides whether to send it again; the producer is in its next epoch.
send p c
----
c is at 2 in epoch 0

send p d
----
d is at 3 in epoch 0

consumer audit topic=orders reset=earliest
----
ok

poll audit
----
records below 2 are deleted; goes on there

poll audit
----
nothing new
