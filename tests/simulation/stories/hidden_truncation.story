# KIP-320, hidden truncation: an unclean election loses records that a consumer has read, and the
# new log grows past its position. Without epochs the consumer would go on behind the lost records.

cluster brokers=(1,2,3)
----
ok

topic orders replicas=(1,2,3) unclean=yes
----
ok

append orders a b
----
a is at 0 in epoch 0
b is at 1 in epoch 0

replicate orders
----
ok

cut 1 2
----
ok

cut 1 3
----
ok

# The leader goes on alone.
isr orders leader=1 members=(1)
----
ok

append orders c d
----
c is at 2 in epoch 0
d is at 3 in epoch 0

consumer audit topic=orders
----
ok

poll audit
----
0 e0 a
1 e0 b
2 e0 c
3 e0 d

stop 1
----
ok

fence 1
----
ok

append orders x y z
----
x is at 2 in epoch 1
y is at 3 in epoch 1
z is at 4 in epoch 1

show orders
----
leader=2 epoch=1 isr=(2)
1 down epoch=-1 log=[0,4) hw=4 epochs=(0@0)
2 leader epoch=1 log=[0,5) hw=5 epochs=(0@0,1@2)
3 follower epoch=1 log=[0,2) hw=2 epochs=(0@0)

# The consumer learns of the new epoch, and then compares what it has read.
poll audit
----
nothing new

poll audit
----
truncated at 2, the record before it is of epoch 0

# With policy none it raises until the program seeks.
poll audit
----
truncated at 2, the record before it is of epoch 0

seek audit 2 epoch=0
----
ok

poll audit
----
2 e1 x
3 e1 y
4 e1 z
