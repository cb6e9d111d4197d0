# KIP-279, scenario 3: three unclean fail-overs. A: 0 in epoch 1, 1-2 in epoch 4. B: 0-1 in epoch 1,
# 2 in epoch 2. C: 0-2 in epoch 1, 3 in epoch 3. All end with A's log.

cluster brokers=(1,2,3)
----
ok

topic orders replicas=(1,2,3) unclean=yes
----
ok

lay orders 1 epochs=(1x1,4x2)
----
ok

lay orders 2 epochs=(1x2,2x1)
----
ok

lay orders 3 epochs=(1x3,3x1)
----
ok

show orders
----
leader=1 epoch=0 isr=(1,2,3)
1 leader epoch=0 log=[0,3) hw=0 epochs=(1@0,4@1)
2 follower epoch=0 log=[0,3) hw=0 epochs=(1@0,2@2)
3 follower epoch=0 log=[0,4) hw=0 epochs=(1@0,3@3)

replicate orders to=2
----
ok

replicate orders to=3
----
ok

show orders
----
leader=1 epoch=0 isr=(1,2,3)
1 leader epoch=0 log=[0,3) hw=0 epochs=(1@0,4@1)
2 follower epoch=0 log=[0,1) hw=0 epochs=(1@0)
3 follower epoch=0 log=[0,1) hw=0 epochs=(1@0)

replicate orders
----
ok

show orders
----
leader=1 epoch=0 isr=(1,2,3)
1 leader epoch=0 log=[0,3) hw=3 epochs=(1@0,4@1)
2 follower epoch=0 log=[0,3) hw=3 epochs=(1@0,4@1)
3 follower epoch=0 log=[0,3) hw=3 epochs=(1@0,4@1)
