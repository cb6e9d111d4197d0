# KIP-320: a leader that was deposed and does not know it raises no false alarm, and serves nothing
# to a consumer that has read under its successor.

cluster brokers=(1,2,3)
----
ok

topic orders replicas=(1,2,3)
----
ok

append orders a b
----
a is at 0 in epoch 0
b is at 1 in epoch 0

replicate orders
----
ok

consumer audit topic=orders
----
ok

poll audit
----
0 e0 a
1 e0 b

# Broker 1 is cut off from the controller and from the others, and leads on in its own view.
hold 1
----
ok

cut 1 2
----
ok

cut 1 3
----
ok

fence 1
----
ok

show orders
----
leader=2 epoch=1 isr=(2,3)
1 leader epoch=0 log=[0,2) hw=2 epochs=(0@0)
2 leader epoch=1 log=[0,2) hw=2 epochs=(0@0)
3 follower epoch=1 log=[0,2) hw=2 epochs=(0@0)

append orders c
----
c is at 2 in epoch 1

replicate orders
----
ok

poll audit
----
nothing new

poll audit
----
2 e1 c

# It asks the deposed leader: no alarm, and nothing that was not committed.
append orders lost to=1
----
lost is at 2 in epoch 0

poll audit from=1
----
UnavailableError: the request has leader epoch 1, node 1 has 0

poll audit
----
nothing new

# It cannot shrink the ISR to itself, so nothing that it writes is committed.
isr orders leader=1 members=(1)
----
refused: REQUEST_TIMED_OUT

heal
----
ok

deliver 1
----
ok

replicate orders
----
ok

show orders
----
leader=2 epoch=1 isr=(2,3)
1 follower epoch=1 log=[0,3) hw=3 epochs=(0@0,1@2)
2 leader epoch=1 log=[0,3) hw=3 epochs=(0@0,1@2)
3 follower epoch=1 log=[0,3) hw=3 epochs=(0@0,1@2)

poll audit
----
nothing new
