# KIP-380, its third failure (KAFKA-7235): the first LeaderAndIsr that a broker gets after its start was
# decided before. It must not take a role from it (380.3): here it would lead beside the new leader.

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

hold 1
----
ok

# That broker 1 leads bills is under way to it when it dies; then the leadership goes to broker 2.
topic bills replicas=(1,2)
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

# The command of its past life: lead bills, with epoch 0.
deliver 1 first=1
----
broker 1 refuses LeaderAndIsr: STALE_BROKER_EPOCH

show bills
----
leader=2 epoch=1 isr=(2)
1 stopped epoch=-1 log=[0,0) hw=0 epochs=()
2 leader epoch=1 log=[0,0) hw=0 epochs=()

deliver 1
----
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH
broker 1 refuses LeaderAndIsr: STALE_BROKER_EPOCH
broker 1 refuses UpdateMetadata: STALE_BROKER_EPOCH

show bills
----
leader=2 epoch=1 isr=(2)
1 follower epoch=1 log=[0,0) hw=0 epochs=()
2 leader epoch=1 log=[0,0) hw=0 epochs=()

metadata 1
----
bills leader=2 epoch=1
orders leader=2 epoch=1
