// Command quorateload measures Quorate with a load in Go, as the other systems have theirs: reads
// over one ReadStream, one writer under watchers. In the unary modes it also measures a server
// that answers Write and DescribeConfigs only (hraft).
package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"quorate.bench/measure"
	pb "quorate.bench/quorumv1"
)

const (
	connectionsMax      = 16
	operationSecondsMax = 10 * time.Second
)

func dial(endpoint string) pb.MetadataServiceClient {
	connection, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		measure.Fail(err)
	}
	return pb.NewMetadataServiceClient(connection)
}

// change is the write of bench/closed_loop.py.
func change(number int64) *pb.Command {
	value := measure.Value(number)
	return &pb.Command{
		Origin: &pb.CommandOrigin{RequestId: fmt.Sprintf("write-%d", number)},
		Kind: &pb.Command_IncrementalAlterConfigs{IncrementalAlterConfigs: &pb.IncrementalAlterConfigs{
			ResourceType: pb.ConfigResourceType_CONFIG_RESOURCE_TYPE_TOPIC,
			ResourceName: measure.Key(number),
			Alterations: []*pb.ConfigAlteration{{
				Name: "quorate.note", Operation: pb.ConfigOperation_CONFIG_OPERATION_SET, Value: &value}},
		}},
	}
}

func read(number int64, isLocal bool) *pb.DescribeConfigsRequest {
	level := pb.ReadLevel_READ_LEVEL_LINEARIZABLE
	if isLocal {
		level = pb.ReadLevel_READ_LEVEL_LOCAL
	}
	return &pb.DescribeConfigsRequest{
		Read: &pb.ReadOptions{Level: level},
		Resources: []*pb.ConfigResource{{
			Type: pb.ConfigResourceType_CONFIG_RESOURCE_TYPE_TOPIC, Name: measure.Key(number)}},
	}
}

func unaryWrite(client pb.MetadataServiceClient, number int64, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := client.Write(ctx, &pb.WriteRequest{
		Writer: &pb.WriterIdentity{ClientId: "bench"}, Command: change(number)})
	return err
}

func main() {
	load := measure.Flags()
	clients := make([]pb.MetadataServiceClient, max(len(load.Endpoints), min(load.Clients, connectionsMax)))
	for i := range clients {
		endpoint := load.Endpoints[0]
		if load.Mode == "failover" {
			endpoint = load.Endpoints[i%len(load.Endpoints)]
		}
		clients[i] = dial(endpoint)
	}
	switch load.Mode {
	case "failover":
		measure.Failover(len(load.Endpoints), func(at int, number int64) error {
			return unaryWrite(clients[at], number, measure.AttemptTimeout)
		})
	case "watch":
		watch(load)
	case "linearizable", "local":
		stream := openReads(clients[0])
		answers := make([]chan *pb.ReadAnswer, load.Clients)
		for i := range answers {
			answers[i] = make(chan *pb.ReadAnswer, 1)
		}
		measure.ClosedLoops(load, func(client int) error {
			request := read(int64(client), load.Mode == "local")
			answer := stream.ask(&pb.ReadQuery{
				Kind: &pb.ReadQuery_DescribeConfigs{DescribeConfigs: request}}, answers[client])
			if answer.ErrorCode != 0 {
				return fmt.Errorf("%v: %s", answer.ErrorCode, answer.Message)
			}
			return nil
		})
	default:
		measure.ClosedLoops(load, func(client int) error {
			number := measure.Number()
			if load.Mode == "unary-write" {
				return unaryWrite(clients[client%len(clients)], number, operationSecondsMax)
			}
			ctx, cancel := context.WithTimeout(context.Background(), operationSecondsMax)
			defer cancel()
			_, err := clients[client%len(clients)].DescribeConfigs(ctx, read(number, load.Mode == "unary-local"))
			return err
		})
	}
}
