# KIP-380: a command that was decided for a broker's former registration is delayed, and arrives after
# the broker has restarted. It must not be executed (380.3): here it would remove a log before the new
# registration has said which logs the broker keeps.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2)
----
ok

topic old replicas=(1,2)
----
ok

append orders a
----
a is at 0 in epoch 0

append old b
----
b is at 0 in epoch 0

replicate orders
----
ok

replicate old
----
ok

hold 1
----
ok

drop old
----
ok

stop 1
----
ok

fence 1
----
ok

start 1
----
ok

deliver 1
----
broker 1 refuses StopReplica: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH
broker 1 refuses LeaderAndIsr: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH

show orders
----
leader=2 epoch=1 isr=(2)
1 follower epoch=1 log=[0,1) hw=1 epochs=(0@0)
2 leader epoch=1 log=[0,1) hw=1 epochs=(0@0)
