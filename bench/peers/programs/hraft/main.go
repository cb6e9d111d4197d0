// Command hraft is one node of a hashicorp/raft cluster (boltdb store, every write synced) behind
// Quorate's own Write and DescribeConfigs, so that the same load program measures both.
//
// Usage: hraft -id 0 -clients ADDRESS,ADDRESS,ADDRESS -peers ADDRESS,ADDRESS,ADDRESS -folder DIR
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"quorate.bench/measure"
	pb "quorate.bench/quorumv1"
)

const (
	applySecondsMax = 5 * time.Second
	statePause      = 100 * time.Millisecond
	appliedPause    = 50 * time.Microsecond
	appendEntries   = 1024
)

// configs is the state machine: the newest value of each topic.
type configs struct {
	mutex  sync.RWMutex
	values map[string]string
}

func (c *configs) Apply(entry *raft.Log) any {
	var command pb.Command
	if err := proto.Unmarshal(entry.Data, &command); err != nil {
		return err
	}
	change := command.GetIncrementalAlterConfigs()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.values[change.ResourceName] = *change.Alterations[0].Value
	return nil
}

// Snapshots are empty: a run is too short for one to be taken.
func (c *configs) Snapshot() (raft.FSMSnapshot, error) { return emptySnapshot{}, nil }
func (c *configs) Restore(from io.ReadCloser) error    { return from.Close() }

type emptySnapshot struct{}

func (emptySnapshot) Persist(sink raft.SnapshotSink) error { return sink.Close() }
func (emptySnapshot) Release()                             {}

type server struct {
	pb.UnimplementedMetadataServiceServer
	node  *raft.Raft
	state *configs
}

func (s *server) Write(_ context.Context, request *pb.WriteRequest) (*pb.WriteResponse, error) {
	data, err := proto.Marshal(request.Command)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	applied := s.node.Apply(data, applySecondsMax)
	if err := applied.Error(); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &pb.WriteResponse{Answer: &pb.WriteAnswer{Offset: int64(applied.Index())}}, nil
}

func (s *server) DescribeConfigs(
	_ context.Context, request *pb.DescribeConfigsRequest,
) (*pb.DescribeConfigsResponse, error) {
	if request.Read.GetLevel() == pb.ReadLevel_READ_LEVEL_LINEARIZABLE {
		at := s.node.CommitIndex()
		if err := s.node.VerifyLeader().Error(); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		for s.node.AppliedIndex() < at {
			time.Sleep(appliedPause)
		}
	}
	s.state.mutex.RLock()
	defer s.state.mutex.RUnlock()
	_ = s.state.values[request.Resources[0].Name]
	return &pb.DescribeConfigsResponse{}, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		measure.Fail(err)
	}
	return value
}

func main() {
	id := flag.Int("id", 0, "number of this node")
	clients := flag.String("clients", "", "addresses for clients, of all nodes")
	peers := flag.String("peers", "", "addresses for peers, of all nodes")
	folder := flag.String("folder", "", "data of this node")
	flag.Parse()
	addresses := strings.Split(*peers, ",")
	if err := os.MkdirAll(*folder, 0o755); err != nil {
		measure.Fail(err)
	}
	store := must(raftboltdb.New(raftboltdb.Options{Path: filepath.Join(*folder, "log.db")}))
	transport := must(raft.NewTCPTransport(addresses[*id], nil, 3, 10*time.Second, os.Stderr))
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(fmt.Sprint(*id))
	config.LogLevel = "ERROR"
	config.BatchApplyCh = true
	config.MaxAppendEntries = appendEntries
	state := &configs{values: map[string]string{}}
	node := must(raft.NewRaft(config, state, store, store, raft.NewInmemSnapshotStore(), transport))
	var servers []raft.Server
	for i, address := range addresses {
		servers = append(servers, raft.Server{
			ID: raft.ServerID(fmt.Sprint(i)), Address: raft.ServerAddress(address)})
	}
	// It fails on a node that has a state already, as after a restart.
	_ = node.BootstrapCluster(raft.Configuration{Servers: servers}).Error()
	go func() {
		for ; ; time.Sleep(statePause) {
			_ = os.WriteFile(filepath.Join(*folder, "state"), []byte(node.State().String()), 0o644)
		}
	}()
	listener := must(net.Listen("tcp", strings.Split(*clients, ",")[*id]))
	served := grpc.NewServer()
	pb.RegisterMetadataServiceServer(served, &server{node: node, state: state})
	measure.Fail(served.Serve(listener))
}
