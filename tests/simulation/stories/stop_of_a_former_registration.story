# KIP-380, its first failure: a broker restarts during its controlled shutdown, and the StopReplica of
# that shutdown arrives after the restart. If it were executed (380.3), the replica would stop to
# fetch for ever, although the controller counts on it.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2)
----
ok

topic bills replicas=(2,1)
----
ok

append bills a
----
a is at 0 in epoch 0

replicate bills
----
ok

hold 1
----
ok

# It leads orders and follows bills, so it must hand over first, and is told to stop both.
heartbeat 1 shutdown=yes
----
NONE

show orders
----
leader=2 epoch=1 isr=(2)
1 leader epoch=0 log=[0,0) hw=0 epochs=()
2 leader epoch=1 log=[0,0) hw=0 epochs=()

stop 1
----
ok

fence 1
----
ok

start 1
----
ok

deliver 1 old=last
----
broker 1 refuses StopReplica: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH

append bills b
----
b is at 1 in epoch 0

replicate bills
----
ok

show bills
----
leader=2 epoch=0 isr=(2,1)
2 leader epoch=0 log=[0,2) hw=2 epochs=(0@0)
1 follower epoch=0 log=[0,2) hw=2 epochs=(0@0)
