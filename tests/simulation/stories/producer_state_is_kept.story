# KIP-360: the records of a producer are deleted. Its state stays, so that it may go on (360.5).

cluster brokers=(1,2)
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
c is at 2 in epoch 0

replicate orders
----
ok

# The state survives a fail-over too.
stop 1
----
ok

fence 1
----
ok

send p d
----
d is at 3 in epoch 1
