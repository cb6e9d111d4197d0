# 320.6: a position that was stored with its epoch shows a truncation after a restart as well.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2) unclean=yes
----
ok

append orders a
----
a is at 0 in epoch 0

replicate orders
----
ok

cut 1 2
----
ok

isr orders leader=1 members=(1)
----
ok

append orders b c
----
b is at 1 in epoch 0
c is at 2 in epoch 0

consumer audit topic=orders
----
ok

poll audit
----
0 e0 a
1 e0 b
2 e0 c

stop 1
----
ok

fence 1
----
ok

append orders x y z
----
x is at 1 in epoch 1
y is at 2 in epoch 1
z is at 3 in epoch 1

restart audit
----
ok

poll audit
----
truncated at 1, the record before it is of epoch 0

# A position without an epoch, as after a plain seek, is not compared.
seek audit 3
----
ok

poll audit
----
3 e1 z
