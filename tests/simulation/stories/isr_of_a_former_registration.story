# KIP-903 and 380.2: a follower has caught up, and restarts before its leader asks to add it to the ISR.
# Its former registration is not added: what it had acknowledged may be gone.

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

isr orders leader=1 members=(1)
----
ok

cut 1 2
----
ok

shutdown 2
----
ok

start 2
----
ok

isr orders leader=1 members=(1,2)
----
refused: INELIGIBLE_REPLICA

heal
----
ok

replicate orders
----
ok

show orders
----
leader=1 epoch=0 isr=(1,2)
1 leader epoch=0 log=[0,1) hw=1 epochs=(0@0)
2 follower epoch=0 log=[0,1) hw=1 epochs=(0@0)
