// Command etcdload measures an etcd cluster the way bench/closed_loop.py measures ours.
//
// Mode "load": every writer puts a 100-byte value, waits for the answer and writes again.
// Mode "failover": one writer goes from endpoint to endpoint until a put is acknowledged, and
// prints the wall time of every acknowledgement, so that the caller can find the gap.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	valueBytes     = 100
	keyCount       = 10_000
	connectionsMax = 16
	attemptTimeout = 200 * time.Millisecond
	retryPause     = 5 * time.Millisecond
)

type result struct {
	Writers int     `json:"writers"`
	Writes  int     `json:"writes"`
	Errors  int     `json:"errors"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"rate"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
}

func dial(endpoints []string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return client
}

func load(endpoints []string, writers int, measured, warmUp time.Duration) {
	connections := min(writers, connectionsMax)
	clients := make([]*clientv3.Client, connections)
	for i := range clients {
		clients[i] = dial(endpoints)
		defer clients[i].Close()
	}
	value := strings.Repeat("x", valueBytes)
	from := time.Now().Add(warmUp)
	until := from.Add(measured)
	took := make([][]time.Duration, writers)
	failed := make([]int, writers)
	var running sync.WaitGroup
	for w := range writers {
		running.Add(1)
		go func() {
			defer running.Done()
			for turn := w; ; turn += writers {
				began := time.Now()
				if !began.Before(until) {
					return
				}
				key := fmt.Sprintf("bench/%06d", turn%keyCount)
				_, err := clients[w%connections].Put(context.Background(), key, value)
				ended := time.Now()
				if err != nil {
					failed[w]++
				} else if began.After(from) && !ended.After(until) {
					took[w] = append(took[w], ended.Sub(began))
				}
			}
		}()
	}
	running.Wait()
	var all []float64
	out := result{Writers: writers, Seconds: measured.Seconds()}
	for w := range writers {
		out.Errors += failed[w]
		for _, each := range took[w] {
			all = append(all, float64(each)/float64(time.Millisecond))
		}
	}
	sort.Float64s(all)
	out.Writes = len(all)
	out.Rate = float64(len(all)) / measured.Seconds()
	if len(all) > 0 {
		out.P50 = all[len(all)/2]
		out.P99 = all[min(len(all)-1, len(all)*99/100)]
	}
	_ = json.NewEncoder(os.Stdout).Encode(out)
}

func failover(endpoints []string) {
	clients := make([]*clientv3.Client, len(endpoints))
	for i, endpoint := range endpoints {
		clients[i] = dial([]string{endpoint})
	}
	out := bufio.NewWriter(os.Stdout)
	for at := 0; ; {
		ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
		_, err := clients[at].Put(ctx, "bench/failover", "x")
		cancel()
		if err != nil {
			at = (at + 1) % len(clients)
			time.Sleep(retryPause)
			continue
		}
		fmt.Fprintln(out, time.Now().UnixNano())
		out.Flush()
	}
}

func main() {
	endpoints := flag.String("endpoints", "", "comma-separated")
	mode := flag.String("mode", "load", "load or failover")
	writers := flag.Int("writers", 1, "")
	measured := flag.Duration("measured", 5*time.Second, "")
	warmUp := flag.Duration("warm-up", time.Second, "")
	flag.Parse()
	list := strings.Split(*endpoints, ",")
	if *mode == "failover" {
		failover(list)
		return
	}
	load(list, *writers, *measured, *warmUp)
}
