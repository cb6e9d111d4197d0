package main

import (
	"context"
	"runtime"
	"sync"

	"quorate.bench/measure"
	pb "quorate.bench/quorumv1"
)

const (
	waitingMax = 4096
	yieldsMax  = 3
)

// reads is one ReadStream. What gathers while a message is sent leaves in the next one.
type reads struct {
	call    pb.MetadataService_ReadStreamClient
	waiting chan *asked
	mutex   sync.Mutex
	sent    map[uint64]*asked
}

type asked struct {
	query  *pb.ReadQuery
	answer chan *pb.ReadAnswer
}

func openReads(client pb.MetadataServiceClient) *reads {
	call, err := client.ReadStream(context.Background())
	if err != nil {
		measure.Fail(err)
	}
	stream := &reads{call: call, waiting: make(chan *asked, waitingMax), sent: map[uint64]*asked{}}
	go stream.send()
	go stream.receive()
	return stream
}

func (stream *reads) ask(query *pb.ReadQuery, answer chan *pb.ReadAnswer) *pb.ReadAnswer {
	stream.waiting <- &asked{query, answer}
	return <-answer
}

func (stream *reads) send() {
	var tag uint64
	for first := range stream.waiting {
		// One message of answers wakes many readers: let them all ask before this one leaves.
		for turn, before := 0, -1; turn < yieldsMax && len(stream.waiting) != before; turn++ {
			before = len(stream.waiting)
			runtime.Gosched()
		}
		message := &pb.ReadStreamRequest{}
		stream.mutex.Lock()
		for next := first; next != nil; {
			tag++
			next.query.Tag = tag
			stream.sent[tag] = next
			message.Queries = append(message.Queries, next.query)
			select {
			case next = <-stream.waiting:
			default:
				next = nil
			}
		}
		stream.mutex.Unlock()
		if err := stream.call.Send(message); err != nil {
			measure.Fail(err)
		}
	}
}

func (stream *reads) receive() {
	for {
		message, err := stream.call.Recv()
		if err != nil {
			measure.Fail(err)
		}
		stream.mutex.Lock()
		for _, answer := range message.Answers {
			stream.sent[answer.Tag].answer <- answer
			delete(stream.sent, answer.Tag)
		}
		stream.mutex.Unlock()
	}
}
