// Topicleaders writes a topic's retention, reads it back, and then prints each change of leaders and
// configurations of a Quorate cluster.
//
// It is made from proto/quorum/v1 alone; README.md says how to build it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "quorate.example/topicleaders/quorumv1"
)

// unchanged is what the leader of a PartitionChangeRecord is where it did not change.
const unchanged = -2

// cluster is what the program knows: names of topics by id, and leaders by topic id and partition.
type cluster struct {
	client  pb.MetadataServiceClient
	names   map[string]string
	leaders map[string]int32
	// included is the offset of the last answer about a topic, by topic id.
	included map[string]int64
}

// lead prints the leader of a partition if it is another one than before.
func (c *cluster) lead(topicID []byte, partition, leader int32) {
	key := fmt.Sprintf("%x-%d", topicID, partition)
	if before, known := c.leaders[key]; !known || before != leader {
		c.leaders[key] = leader
		fmt.Printf("%s-%d: leader %d\n", c.names[string(topicID)], partition, leader)
	}
}

// isIncluded says whether the last answer about a topic has the changes of a batch already.
func (c *cluster) isIncluded(topicID []byte, endOffset int64) bool {
	return endOffset <= c.included[string(topicID)]
}

// read takes one record of a batch, or of the state, whose endOffset is above all answers. It returns
// true if leaders follow from the record that are not in it.
func (c *cluster) read(record *pb.TypedRecord, endOffset int64) bool {
	switch r := record.Record.(type) {
	case *pb.TypedRecord_TopicRecord:
		c.names[string(r.TopicRecord.TopicId)] = r.TopicRecord.Name
	case *pb.TypedRecord_RemoveTopicRecord:
		delete(c.names, string(r.RemoveTopicRecord.TopicId))
	case *pb.TypedRecord_PartitionRecord:
		p := r.PartitionRecord
		if !c.isIncluded(p.TopicId, endOffset) {
			c.lead(p.TopicId, p.PartitionId, p.Leader)
		}
	case *pb.TypedRecord_PartitionChangeRecord:
		p := r.PartitionChangeRecord
		if p.Leader != unchanged && !c.isIncluded(p.TopicId, endOffset) {
			c.lead(p.TopicId, p.PartitionId, p.Leader)
		}
	case *pb.TypedRecord_ConfigRecord:
		fmt.Printf("%s: %s=%s\n", r.ConfigRecord.ResourceName, r.ConfigRecord.Name, r.ConfigRecord.GetValue())
	case *pb.TypedRecord_BrokerFencedEvent, *pb.TypedRecord_BrokerUnfencedEvent,
		*pb.TypedRecord_BrokerShutdownEvent, *pb.TypedRecord_BrokerLeavingEvent:
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
		if c.isIncluded([]byte(id), offset) {
			continue
		}
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
	for _, id := range request.TopicIds {
		c.included[string(id)] = answer.Position.Offset
	}
	for _, topic := range answer.Topics {
		// A topic that was deleted meanwhile has an error code and no partitions.
		for _, p := range topic.Partitions {
			c.lead(topic.TopicId, p.Partition, p.LeaderId)
		}
	}
	return nil
}

// connect returns a client of the node at an address.
func connect(address string) (*grpc.ClientConn, pb.MetadataServiceClient) {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return connection, pb.NewMetadataServiceClient(connection)
}

// leaderIn returns the leader's address that a refused call names; empty if it names none.
func leaderIn(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if hint, ok := detail.(*pb.LeaderHint); ok {
			return hint.Address
		}
	}
	return ""
}

// setConfig sets one value of a topic's configuration, and returns the offset behind it.
//
// A node that does not lead names the leader. A call without a producer is applied again if it is
// repeated, so it is sent once more only when it was refused.
func setConfig(ctx context.Context, address, topic, key, value string) int64 {
	request := &pb.WriteRequest{
		Writer: &pb.WriterIdentity{ClientId: "topicleaders", Reason: "an example"},
		Command: &pb.Command{Kind: &pb.Command_IncrementalAlterConfigs{
			IncrementalAlterConfigs: &pb.IncrementalAlterConfigs{
				ResourceType: pb.ConfigResourceType_CONFIG_RESOURCE_TYPE_TOPIC,
				ResourceName: topic,
				Alterations: []*pb.ConfigAlteration{{
					Name: key, Value: &value, Operation: pb.ConfigOperation_CONFIG_OPERATION_SET,
				}},
			},
		}},
	}
	for range 3 {
		connection, client := connect(address)
		response, err := client.Write(ctx, request)
		connection.Close()
		next := leaderIn(err)
		if err == nil {
			if response.Answer.ErrorCode == pb.ErrorCode_ERROR_CODE_NONE {
				return response.Answer.Offset
			}
			next = response.Answer.GetLeader().GetAddress()
			err = fmt.Errorf("%s: %s", response.Answer.ErrorCode, response.Answer.Message)
		}
		if next == "" {
			log.Fatal(err)
		}
		address = next
	}
	log.Fatal("no node is the leader for long enough")
	return 0
}

// showConfig reads a topic's configuration from a state that has everything below offset.
func showConfig(ctx context.Context, client pb.MetadataServiceClient, topic string, offset int64) {
	answer, err := client.DescribeConfigs(ctx, &pb.DescribeConfigsRequest{
		Read: &pb.ReadOptions{Level: pb.ReadLevel_READ_LEVEL_AT_LEAST, AtLeastOffset: offset},
		Resources: []*pb.ConfigResource{{
			Type: pb.ConfigResourceType_CONFIG_RESOURCE_TYPE_TOPIC, Name: topic,
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, entry := range answer.Resources[0].Entries {
		fmt.Printf("read: %s=%s\n", entry.Name, entry.GetValue())
	}
}

func main() {
	address := flag.String("address", "127.0.0.1:9190", "client address of any node")
	topic := flag.String("topic", "", "a topic whose retention.ms is set first")
	retention := flag.Duration("retention", time.Hour, "what it is set to")
	until := flag.Duration("for", time.Hour, "how long to watch")
	flag.Parse()
	connection, client := connect(*address)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), *until)
	defer cancel()
	if *topic != "" {
		value := strconv.FormatInt(retention.Milliseconds(), 10)
		offset := setConfig(ctx, *address, *topic, "retention.ms", value)
		fmt.Printf("written: below offset %d\n", offset)
		showConfig(ctx, client, *topic, offset)
	}
	stream, err := client.Watch(ctx, &pb.WatchRequest{
		ClientId:   "topicleaders",
		RecordForm: pb.RecordForm_RECORD_FORM_TYPED,
	})
	if err != nil {
		log.Fatal(err)
	}
	known := &cluster{client, map[string]string{}, map[string]int32{}, map[string]int64{}}
	for {
		message, err := stream.Recv()
		if ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		for _, record := range message.GetState().GetTypedRecords() {
			known.read(record, math.MaxInt64)
		}
		for _, batch := range message.GetChanges().GetBatches() {
			asks := false
			for _, record := range batch.TypedRecords {
				asks = known.read(record, batch.EndOffset) || asks
			}
			if asks {
				if err := known.ask(ctx, batch.EndOffset); err != nil && ctx.Err() == nil {
					log.Fatal(err)
				}
			}
		}
	}
}
