// Command etcdload measures an etcd cluster the way bench/closed_loop.py measures Quorate.
package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"quorate.bench/measure"
)

const (
	connectionsMax      = 16
	watcherConnections  = 4
	operationSecondsMax = 10 * time.Second
	watched             = "bench-watched"
)

func dial(endpoint string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		measure.Fail(err)
	}
	return client
}

func main() {
	load := measure.Flags()
	if load.Mode == "failover" {
		clients := make([]*clientv3.Client, len(load.Endpoints))
		for i, endpoint := range load.Endpoints {
			clients[i] = dial(endpoint)
		}
		measure.Failover(len(clients), func(at int, number int64) error {
			ctx, cancel := context.WithTimeout(context.Background(), measure.AttemptTimeout)
			defer cancel()
			_, err := clients[at].Put(ctx, "bench-failover", measure.Value(number))
			return err
		})
		return
	}
	clients := make([]*clientv3.Client, min(load.Clients, connectionsMax))
	for i := range clients {
		clients[i] = dial(load.Endpoints[0])
	}
	for i := range int64(measure.Keys) {
		if _, err := clients[0].Put(context.Background(), measure.Key(i), measure.Value(i)); err != nil {
			measure.Fail(err)
		}
	}
	if load.Mode == "watch" {
		watch(clients[0], load)
		return
	}
	measure.ClosedLoops(load, func(client int) error {
		ctx, cancel := context.WithTimeout(context.Background(), operationSecondsMax)
		defer cancel()
		number := measure.Number()
		etcd := clients[client%len(clients)]
		var err error
		switch load.Mode {
		case "write":
			_, err = etcd.Put(ctx, measure.Key(number), measure.Value(number))
		case "linearizable":
			_, err = etcd.Get(ctx, measure.Key(number))
		case "local":
			_, err = etcd.Get(ctx, measure.Key(number), clientv3.WithSerializable())
		}
		return err
	})
}

func watch(writer *clientv3.Client, load measure.Load) {
	connections := make([]*clientv3.Client, watcherConnections)
	for i := range connections {
		connections[i] = dial(load.Endpoints[0])
	}
	heard := measure.NewHeard(load.Clients)
	for i := range load.Clients {
		// With a context of its own a watcher has a stream of its own.
		ctx := clientv3.WithRequireLeader(context.WithValue(context.Background(), watcherKey{}, i))
		events := connections[i%watcherConnections].Watch(ctx, watched, clientv3.WithCreatedNotify())
		<-events // the note that it was created
		go func() {
			for response := range events {
				for _, event := range response.Events {
					heard.Event(i, string(event.Kv.Value))
				}
			}
		}()
	}
	next := func() any { return measure.Value(measure.Number()) }
	measure.WriteUnderWatchers(load, heard, next, func(value any) error {
		_, err := writer.Put(context.Background(), watched, value.(string))
		return err
	})
}

type watcherKey struct{}
