# KIP-380: a broker restarts faster than its session expires. The controller does not mistake that for
# nothing (380.5): a second process is refused, until the first one has failed and its leaderships
# have moved. Then the broker is registered under a new epoch.

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

show orders
----
leader=1 epoch=0 isr=(1,2,3)
1 leader epoch=0 log=[0,1) hw=1 epochs=(0@0)
2 follower epoch=0 log=[0,1) hw=1 epochs=(0@0)
3 follower epoch=0 log=[0,1) hw=1 epochs=(0@0)

stop 1
----
ok

start 1
----
refused: DUPLICATE_BROKER_REGISTRATION: broker 1 is registered as another incarnation with epoch 1, whose session has not run out; retry within 9000 ms

fence 1
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
broker 1 refuses LeaderAndIsr: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH

replicate orders
----
ok

show orders
----
leader=2 epoch=1 isr=(1,2,3)
1 follower epoch=1 log=[0,1) hw=1 epochs=(0@0)
2 leader epoch=1 log=[0,1) hw=1 epochs=(0@0)
3 follower epoch=1 log=[0,1) hw=1 epochs=(0@0)
