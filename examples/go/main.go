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

// names are topics by id.
type names map[string]string

// read prints one record, and remembers the names of topics.
func (n names) read(record *pb.TypedRecord) {
	switch r := record.Record.(type) {
	case *pb.TypedRecord_TopicRecord:
		n[string(r.TopicRecord.TopicId)] = r.TopicRecord.Name
	case *pb.TypedRecord_PartitionRecord:
		p := r.PartitionRecord
		fmt.Printf("%s-%d: leader %d\n", n[string(p.TopicId)], p.PartitionId, p.Leader)
	case *pb.TypedRecord_PartitionChangeRecord:
		p := r.PartitionChangeRecord
		if p.Leader != unchanged {
			fmt.Printf("%s-%d: leader %d\n", n[string(p.TopicId)], p.PartitionId, p.Leader)
		}
	}
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
	stream, err := pb.NewMetadataServiceClient(connection).Watch(ctx, &pb.WatchRequest{
		ClientId:   "topicleaders",
		RecordForm: pb.RecordForm_RECORD_FORM_TYPED,
	})
	if err != nil {
		log.Fatal(err)
	}
	known := names{}
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
			for _, record := range batch.TypedRecords {
				known.read(record)
			}
		}
	}
}
