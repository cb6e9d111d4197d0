// Package measure has what every load program shares: its flags, its loops, and its figures.
//
// A program prints BEGIN and END around the measured time, so that its caller can read the
// processor time of the nodes, and then one JSON object.
package measure

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ValueBytes is the length of a written value.
const ValueBytes = 100

// Keys is the number of keys or topics that the load is spread over.
const Keys = 64

// AttemptTimeout bounds one write of Failover.
const AttemptTimeout = 200 * time.Millisecond

const (
	sampleCapacity = 1 << 16
	endSecondsMax  = 5 * time.Second
	retryPause     = 5 * time.Millisecond
	settle         = 500 * time.Millisecond
	errorsShown    = 3
)

// Load is what the command line asks for.
type Load struct {
	Endpoints []string
	Mode      string
	Clients   int
	Seconds   time.Duration
	WarmUp    time.Duration
}

// Flags parses the command line.
func Flags() Load {
	endpoints := flag.String("endpoints", "", "comma-separated; the load goes to the first")
	mode := flag.String("mode", "write", "write, linearizable, local, watch or failover")
	clients := flag.Int("clients", 1, "closed loops, or watchers of the one writer")
	seconds := flag.Duration("seconds", 5*time.Second, "measured time")
	warmUp := flag.Duration("warm-up", time.Second, "time before it")
	flag.Parse()
	return Load{strings.Split(*endpoints, ","), *mode, *clients, *seconds, *warmUp}
}

// Key returns the key of a number.
func Key(number int64) string { return fmt.Sprintf("bench-%d", number%Keys) }

var written = time.Now().UnixNano()

// Number returns a number that no other write of this machine has.
func Number() int64 { return atomic.AddInt64(&written, 1) }

// Value returns the value of a number: different for each, and ValueBytes long.
func Value(number int64) string {
	text := fmt.Sprintf("%x-", number)
	return text + strings.Repeat("x", ValueBytes-len(text))
}

type figures struct {
	Clients    int     `json:"clients"`
	Operations int     `json:"operations"`
	Rate       float64 `json:"rate"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Errors     int64   `json:"errors"`
	LoadUs     float64 `json:"load_us"`
	// Of watchers: how often one began again at the newest state, and the events these did not get.
	WatchRestarts int64 `json:"watch_restarts"`
	EventsMissed  int64 `json:"events_missed"`
}

func processorSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		Fail(err)
	}
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

// Fail ends the program.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func newFigures(
	load Load, seconds float64, operations int, ms []float64, errors int64, used float64,
) figures {
	sort.Float64s(ms)
	out := figures{Clients: load.Clients, Operations: operations, Errors: errors}
	if operations > 0 {
		out.Rate = float64(operations) / seconds
		out.LoadUs = used * 1e6 / float64(operations)
	}
	if len(ms) > 0 {
		out.P50, out.P99 = ms[len(ms)/2], ms[len(ms)*99/100]
	}
	return out
}

func (out figures) print() { _ = json.NewEncoder(os.Stdout).Encode(out) }

// ClosedLoops runs operate(client) for each client again and again, and prints the figures.
// An operation that was under way at either end of the measured time does not count.
func ClosedLoops(load Load, operate func(client int) error) {
	took := make([][]float64, load.Clients)
	var failed int64
	from := time.Now().Add(load.WarmUp)
	until := from.Add(load.Seconds)
	var running sync.WaitGroup
	for client := range load.Clients {
		took[client] = make([]float64, 0, sampleCapacity)
		running.Add(1)
		go func() {
			defer running.Done()
			for began := time.Now(); began.Before(until); began = time.Now() {
				if err := operate(client); err != nil {
					if atomic.AddInt64(&failed, 1) <= errorsShown {
						fmt.Fprintln(os.Stderr, err)
					}
				} else if ended := time.Now(); !began.Before(from) && !ended.After(until) {
					took[client] = append(took[client], ended.Sub(began).Seconds()*1e3)
				}
			}
		}()
	}
	time.Sleep(time.Until(from))
	before := processorSeconds()
	fmt.Println("BEGIN")
	time.Sleep(time.Until(until))
	used := processorSeconds() - before
	fmt.Println("END")
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(endSecondsMax):
		Fail(fmt.Errorf("an operation does not end"))
	}
	var all []float64
	for _, each := range took {
		all = append(all, each...)
	}
	newFigures(load, load.Seconds.Seconds(), len(all), all, atomic.LoadInt64(&failed), used).print()
}

// Failover calls write(endpoint, number) without end, goes on to the next endpoint after an error,
// and prints the wall time of every success in nanoseconds.
func Failover(endpoints int, write func(endpoint int, number int64) error) {
	for at := 0; ; {
		if write(at, Number()) != nil {
			at = (at + 1) % endpoints
			time.Sleep(retryPause)
			continue
		}
		if _, err := fmt.Println(time.Now().UnixNano()); err != nil {
			return
		}
	}
}
