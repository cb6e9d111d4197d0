# KIP-380, its fourth failure: a broker restarts so fast that nobody notices a gap: a controlled shutdown,
# and at once a start. It is not mistaken for a broker that was never away (380.5): its new
# registration gets every partition, and only then it may be in an ISR again.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2)
----
ok

append orders a
----
a is at 0 in epoch 0

replicate orders
----
ok

shutdown 2
----
ok

start 2
----
ok

show orders
----
leader=1 epoch=0 isr=(1)
1 leader epoch=0 log=[0,1) hw=1 epochs=(0@0)
2 follower epoch=0 log=[0,1) hw=1 epochs=(0@0)

metadata 2
----
orders leader=1 epoch=0

append orders b
----
b is at 1 in epoch 0

replicate orders
----
ok

show orders
----
leader=1 epoch=0 isr=(1,2)
1 leader epoch=0 log=[0,2) hw=2 epochs=(0@0)
2 follower epoch=0 log=[0,2) hw=2 epochs=(0@0)
