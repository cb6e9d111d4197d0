# KIP-380: a controlled shutdown moves the leaderships first, so a restart needs no wait. A heartbeat or
# a shutdown of the former registration is refused (380.2, 380.4).

cluster brokers=(1,2,3)
----
ok

topic orders replicas=(1,2,3)
----
ok

append orders a
----
a is at 0 in epoch 0

replicate orders
----
ok

shutdown 1
----
ok

show orders
----
leader=2 epoch=1 isr=(2,3)
1 down epoch=-1 log=[0,1) hw=1 epochs=(0@0)
2 leader epoch=1 log=[0,1) hw=1 epochs=(0@0)
3 follower epoch=1 log=[0,1) hw=1 epochs=(0@0)

start 1
----
ok

show orders
----
leader=2 epoch=1 isr=(2,3)
1 follower epoch=1 log=[0,1) hw=1 epochs=(0@0)
2 leader epoch=1 log=[0,1) hw=1 epochs=(0@0)
3 follower epoch=1 log=[0,1) hw=1 epochs=(0@0)

# What the former process sent arrives late.
heartbeat 1 epoch=1
----
STALE_BROKER_EPOCH

heartbeat 1 epoch=1 shutdown=yes
----
STALE_BROKER_EPOCH

heartbeat 1
----
NONE
