# KIP-380: a broker in controlled shutdown is told to stop what it follows, and keeps the logs. It leads
# nothing any more, and no fetch of it can bring it back into an ISR.

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

# Broker 1 lags, so the shutdown changes nothing of bills. It is told to stop them all the same.
isr bills leader=2 members=(2)
----
ok

heartbeat 1 shutdown=yes
----
NONE

show orders
----
leader=2 epoch=1 isr=(2)
1 stopped epoch=-1 log=[0,0) hw=0 epochs=()
2 leader epoch=1 log=[0,0) hw=0 epochs=()

show bills
----
leader=2 epoch=0 isr=(2)
2 leader epoch=0 log=[0,1) hw=1 epochs=(0@0)
1 stopped epoch=-1 log=[0,1) hw=1 epochs=(0@0)

hosted 1
----
orders log=[0,0)
bills log=[0,1)
