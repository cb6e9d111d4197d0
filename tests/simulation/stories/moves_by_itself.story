# KIP-320: with the policies earliest and latest the consumer goes on at the first record that
# differs, not at an end of the log.

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

isr orders leader=1 members=(1)
----
ok

append orders c d e
----
c is at 2 in epoch 0
d is at 3 in epoch 0
e is at 4 in epoch 0

consumer early topic=orders reset=earliest
----
ok

poll early
----
0 e0 a
1 e0 b
2 e0 c
3 e0 d
4 e0 e

consumer late topic=orders reset=latest
----
ok

poll late
----
0 e0 a
1 e0 b
2 e0 c
3 e0 d
4 e0 e

stop 1
----
ok

fence 1
----
ok

append orders x
----
x is at 2 in epoch 1

poll early
----
nothing new

poll early
----
2 e1 x

poll early
----
nothing new

poll late
----
nothing new

poll late
----
2 e1 x

poll late
----
nothing new
