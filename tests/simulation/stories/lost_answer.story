# KIP-360 and 360.7: a record whose answer was lost is sent again under its number, and is in the log
# once. A number may not be left out.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2)
----
ok

producer p topic=orders
----
producer 0 epoch 0

send p a
----
a is at 0 in epoch 0

send p b lost=yes
----
b is at 1 in epoch 0

replicate orders
----
ok

stop 1
----
ok

fence 1
----
ok

# The new leader knows the number from the log that it copied.
repeat p
----
b is at 1 in epoch 0

send p c
----
c is at 2 in epoch 1

consumer audit topic=orders
----
ok

poll audit
----
0 e0 a
1 e0 b
2 e1 c
