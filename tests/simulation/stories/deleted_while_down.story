# KIP-380: what a broker has on its disks is compared with the image after a restart. A topic was deleted
# while it was down, and another one has its name now: the old log is no log of that one.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2)
----
ok

topic bills replicas=(1,2)
----
ok

append orders a b
----
a is at 0 in epoch 0
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

drop orders
----
ok

drop bills
----
ok

topic orders replicas=(2,1)
----
ok

append orders c
----
c is at 0 in epoch 0

hosted 1
----
a deleted topic log=[0,2)
a deleted topic log=[0,0)

start 1
----
broker 1 refuses LeaderAndIsr: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH
broker 1 refuses StopReplica: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH
broker 1 refuses StopReplica: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH
broker 1 refuses LeaderAndIsr: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH

hosted 1
----
orders log=[0,0)

replicate orders
----
ok

show orders
----
leader=2 epoch=0 isr=(2,1)
2 leader epoch=0 log=[0,1) hw=1 epochs=(0@0)
1 follower epoch=0 log=[0,1) hw=1 epochs=(0@0)
