package main

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"quorate.bench/measure"
	pb "quorate.bench/quorumv1"
)

// node is a server that answers each Watch with the next of these errors, the last one for ever.
type node struct {
	pb.UnimplementedMetadataServiceServer
	ends  []error
	calls int
}

func (n *node) Watch(request *pb.WatchRequest, call grpc.ServerStreamingServer[pb.WatchResponse]) error {
	end := n.ends[min(n.calls, len(n.ends)-1)]
	n.calls++
	if request.FromOffset != nil {
		return status.Error(codes.Internal, "a watcher that begins again wants the state")
	}
	state := &pb.StateChunk{IsLast: true}
	if err := call.Send(&pb.WatchResponse{Event: &pb.WatchResponse_State{State: state}}); err != nil {
		return err
	}
	return end
}

func serve(t *testing.T, served *node) pb.MetadataServiceClient {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	pb.RegisterMetadataServiceServer(server, served)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient("passthrough:bench",
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return pb.NewMetadataServiceClient(connection)
}

func TestATrimmedLogDoesNotEndAWatcher(t *testing.T) {
	trimmed := status.Error(codes.OutOfRange, "the log begins at offset 7")
	served := &node{ends: []error{trimmed, trimmed, status.Error(codes.Unavailable, "stopped")}}
	states := 0
	heard := measure.NewHeard(1)
	err := follow(serve(t, served), heard, 0, func() { states++ })
	if status.Code(err) != codes.Unavailable || served.calls != 3 || states != 3 {
		t.Fatalf("%v after %d calls and %d states", err, served.calls, states)
	}
	if restarts := heard.Restarts(); restarts != 2 {
		t.Fatalf("%d restarts are counted", restarts)
	}
}

func TestAWatcherThatNeverKeepsUpEnds(t *testing.T) {
	served := &node{ends: []error{status.Error(codes.OutOfRange, "trimmed")}}
	err := follow(serve(t, served), measure.NewHeard(1), 0, func() {})
	if served.calls != watchRestartsMax+1 || !strings.Contains(err.Error(), "began again") {
		t.Fatalf("%v after %d calls", err, served.calls)
	}
}
