# KIP-279, scenario 1: after two quick fail-overs the logs differ inside of what looks like one
# history. A: 0-20 in epoch 1, 21-30 in epoch 3. B: 0-10 in epoch 1, 11-25 in epoch 2: longer than A's epoch 1.

cluster brokers=(1,2)
----
ok

topic orders replicas=(1,2) unclean=yes
----
ok

lay orders 1 epochs=(1x21,3x10)
----
ok

lay orders 2 epochs=(1x11,2x15)
----
ok

show orders
----
leader=1 epoch=0 isr=(1,2)
1 leader epoch=0 log=[0,31) hw=0 epochs=(1@0,3@21)
2 follower epoch=0 log=[0,26) hw=0 epochs=(1@0,2@11)

# B follows A. One truncation, to the end of what both have in epoch 1, and then the copy.
replicate orders to=2
----
ok

show orders
----
leader=1 epoch=0 isr=(1,2)
1 leader epoch=0 log=[0,31) hw=0 epochs=(1@0,3@21)
2 follower epoch=0 log=[0,11) hw=0 epochs=(1@0)

replicate orders to=2
----
ok

show orders
----
leader=1 epoch=0 isr=(1,2)
1 leader epoch=0 log=[0,31) hw=11 epochs=(1@0,3@21)
2 follower epoch=0 log=[0,31) hw=11 epochs=(1@0,3@21)
