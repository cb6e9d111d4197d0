package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"quorate.bench/measure"
	pb "quorate.bench/quorumv1"
)

const (
	watcherConnections = 4
	requestIdHeader    = "request-id"
	watchRestartsMax   = 10
)

// writer writes one command after the other over one WriteStream, under one producer id.
type writer struct {
	call     pb.MetadataService_WriteStreamClient
	id       int64
	epoch    int32
	sequence int32
	tag      uint64
}

func openWriter(client pb.MetadataServiceClient) *writer {
	call, err := client.WriteStream(context.Background())
	if err != nil {
		measure.Fail(err)
	}
	hello := &pb.WriterIdentity{ClientId: "bench", Reason: "benchmark"}
	if err := call.Send(&pb.WriteStreamRequest{Hello: hello}); err != nil {
		measure.Fail(err)
	}
	if _, err := call.Recv(); err != nil {
		measure.Fail(err)
	}
	opened := &writer{call: call}
	answer, err := opened.exchange(&pb.ProducerCommands{}, &pb.Command{
		Kind: &pb.Command_InitProducerId{InitProducerId: &pb.InitProducerId{}}})
	if err != nil {
		measure.Fail(err)
	}
	opened.id = answer.Result.GetInitProducerId().ProducerId
	opened.epoch = answer.Result.GetInitProducerId().ProducerEpoch
	return opened
}

func (w *writer) write(command *pb.Command) error {
	command.Sequence = w.sequence
	oldest := w.sequence
	w.sequence++
	_, err := w.exchange(
		&pb.ProducerCommands{ProducerId: &w.id, ProducerEpoch: &w.epoch, OldestOpen: oldest}, command)
	return err
}

func (w *writer) exchange(group *pb.ProducerCommands, command *pb.Command) (*pb.WriteAnswer, error) {
	w.tag++
	command.Tag = w.tag
	group.Commands = []*pb.Command{command}
	if err := w.call.Send(&pb.WriteStreamRequest{Groups: []*pb.ProducerCommands{group}}); err != nil {
		return nil, err
	}
	message, err := w.call.Recv()
	if err != nil {
		return nil, err
	}
	if len(message.Answers) != 1 || message.Answers[0].ErrorCode != 0 {
		return nil, fmt.Errorf("no answer to the write: %v", message)
	}
	return message.Answers[0], nil
}

// watch measures one writer while each watcher has a Watch of its own.
func watch(load measure.Load) {
	connections := make([]pb.MetadataServiceClient, watcherConnections)
	for i := range connections {
		connections[i] = dial(load.Endpoints[0])
	}
	heard := measure.NewHeard(load.Clients)
	var ready sync.WaitGroup
	for i := range load.Clients {
		ready.Add(1)
		go func() {
			isReady := sync.OnceFunc(ready.Done)
			measure.Fail(follow(connections[i%watcherConnections], heard, i, isReady))
		}()
	}
	ready.Wait()
	writer := openWriter(dial(load.Endpoints[0]))
	next := func() any { return fmt.Sprintf("write-%d", measure.Number()) }
	measure.WriteUnderWatchers(load, heard, next, func(written any) error {
		var number int64
		if _, err := fmt.Sscanf(written.(string), "write-%d", &number); err != nil {
			return err
		}
		return writer.write(change(number))
	})
}

// follow calls heard.Event for each write that a watcher sees, and isReady at the end of each state.
// The log may be trimmed beyond what a watcher is sent: then it begins again with the newest state.
// Returns the error that ended it.
func follow(client pb.MetadataServiceClient, heard *measure.Heard, number int, isReady func()) error {
	for restarts := 0; ; restarts++ {
		err := followOnce(client, heard, number, isReady)
		if status.Code(err) != codes.OutOfRange {
			return err
		}
		if restarts == watchRestartsMax {
			return fmt.Errorf("watcher %d began again %d times: %w", number, restarts, err)
		}
		heard.Restart(number)
		fmt.Fprintf(os.Stderr, "watcher %d begins again: %v\n", number, err)
	}
}

func followOnce(client pb.MetadataServiceClient, heard *measure.Heard, number int, isReady func()) error {
	call, err := client.Watch(
		context.Background(), &pb.WatchRequest{ClientId: fmt.Sprintf("watcher-%d", number)})
	if err != nil {
		return err
	}
	for {
		message, err := call.Recv()
		if err != nil {
			return err
		}
		if state := message.GetState(); state != nil && state.IsLast {
			isReady()
		}
		for _, batch := range message.GetChanges().GetBatches() {
			for _, header := range batch.Headers {
				if header.Name == requestIdHeader {
					heard.Event(number, string(header.Value))
				}
			}
		}
	}
}
