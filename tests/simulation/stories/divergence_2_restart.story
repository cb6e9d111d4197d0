# KIP-279, scenario 2 (KIP-101, scenario 1): a follower restarts before it knows the newest high
# watermark. It must not truncate to it: the leader may die before the follower has fetched again.

cluster brokers=(1,2,3)
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

append orders b
----
b is at 1 in epoch 0

# The follower has b, and not yet the high watermark 2.
replicate orders to=2
----
ok

show orders
----
leader=1 epoch=0 isr=(1,2)
1 leader epoch=0 log=[0,2) hw=1 epochs=(0@0)
2 follower epoch=0 log=[0,2) hw=1 epochs=(0@0)

shutdown 2
----
ok

start 2
----
ok

show orders
----
leader=1 epoch=0 isr=(1)
1 leader epoch=0 log=[0,2) hw=2 epochs=(0@0)
2 follower epoch=0 log=[0,2) hw=1 epochs=(0@0)

replicate orders to=2
----
ok

stop 1
----
ok

fence 1
----
ok

show orders
----
leader=2 epoch=1 isr=(2)
1 down epoch=-1 log=[0,2) hw=2 epochs=(0@0)
2 leader epoch=1 log=[0,2) hw=2 epochs=(0@0)

consumer audit topic=orders
----
ok

poll audit
----
0 e0 a
1 e0 b
