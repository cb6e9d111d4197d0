// Topicleaders prints topic, partition and leader of each change of a Quorate cluster's metadata.
//
// It is made from proto/quorum/v1 alone; README.md says how to build it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "quorate.example/topicleaders/quorumv1"
)

// unchanged is what the leader of a PartitionChangeRecord is where it did not change.
const unchanged = -2

// cluster is what the program knows: names of topics by id, and leaders by topic id and partition.
type cluster struct {
	client  pb.MetadataServiceClient
	names   map[string]string
	leaders map[string]int32
}

// lead prints the leader of a partition if it is another one than before.
func (c *cluster) lead(topicID []byte, partition, leader int32) {
	key := fmt.Sprintf("%x-%d", topicID, partition)
	if before, known := c.leaders[key]; !known || before != leader {
		c.leaders[key] = leader
		fmt.Printf("%s-%d: leader %d\n", c.names[string(topicID)], partition, leader)
	}
}

// read takes one record; it returns true if leaders follow from the record that are not in it.
func (c *cluster) read(record *pb.TypedRecord) bool {
	switch r := record.Record.(type) {
	case *pb.TypedRecord_TopicRecord:
		c.names[string(r.TopicRecord.TopicId)] = r.TopicRecord.Name
	case *pb.TypedRecord_RemoveTopicRecord:
		delete(c.names, string(r.RemoveTopicRecord.TopicId))
	case *pb.TypedRecord_PartitionRecord:
		p := r.PartitionRecord
		c.lead(p.TopicId, p.PartitionId, p.Leader)
	case *pb.TypedRecord_PartitionChangeRecord:
		p := r.PartitionChangeRecord
		if p.Leader != unchanged {
			c.lead(p.TopicId, p.PartitionId, p.Leader)
		}
	case *pb.TypedRecord_BrokerFencedEvent, *pb.TypedRecord_BrokerUnfencedEvent,
		*pb.TypedRecord_BrokerShutdownEvent:
		return true
	}
	return false
}

// ask reads the leaders of all topics as they are at an offset or later.
func (c *cluster) ask(ctx context.Context, offset int64) error {
	request := &pb.DescribeTopicsRequest{
		Read: &pb.ReadOptions{Level: pb.ReadLevel_READ_LEVEL_AT_LEAST, AtLeastOffset: offset},
	}
	for id := range c.names {
		request.TopicIds = append(request.TopicIds, []byte(id))
	}
	if len(request.TopicIds) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := c.client.DescribeTopics(ctx, request)
	if err != nil {
		return err
	}
	for _, topic := range answer.Topics {
		// A topic that was deleted meanwhile has an error code and no partitions.
		for _, p := range topic.Partitions {
			c.lead(topic.TopicId, p.Partition, p.LeaderId)
		}
	}
	return nil
}

func main() {
	address := flag.String("address", "127.0.0.1:9190", "client address of any node")
	until := flag.Duration("for", time.Hour, "how long to watch")
	flag.Parse()
	connection, err := grpc.NewClient(*address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), *until)
	defer cancel()
	client := pb.NewMetadataServiceClient(connection)
	stream, err := client.Watch(ctx, &pb.WatchRequest{
		ClientId:   "topicleaders",
		RecordForm: pb.RecordForm_RECORD_FORM_TYPED,
	})
	if err != nil {
		log.Fatal(err)
	}
	known := &cluster{client, map[string]string{}, map[string]int32{}}
	for {
		message, err := stream.Recv()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		for _, record := range message.GetState().GetTypedRecords() {
			known.read(record)
		}
		for _, batch := range message.GetChanges().GetBatches() {
			asks := false
			for _, record := range batch.TypedRecords {
				asks = known.read(record) || asks
			}
			if asks {
				if err := known.ask(ctx, batch.EndOffset); err != nil && ctx.Err() == nil {
					log.Fatal(err)
				}
			}
		}
	}
}
