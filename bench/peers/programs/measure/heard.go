package measure

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Heard notes which watchers saw what was written, and when.
type Heard struct {
	began    sync.Map
	isOn     atomic.Bool
	mutex    sync.Mutex
	ms       []float64
	watchers []watcher
}

type watcher struct {
	events   atomic.Int64
	restarts atomic.Int64
}

// NewHeard returns a Heard of so many watchers, numbered from 0.
func NewHeard(watchers int) *Heard { return &Heard{watchers: make([]watcher, watchers)} }

// Event notes that a watcher saw the write of this number or value.
func (heard *Heard) Event(watcher int, written any) {
	began, isKnown := heard.began.Load(written)
	if !isKnown {
		return
	}
	heard.watchers[watcher].events.Add(1)
	if heard.isOn.Load() {
		took := time.Since(began.(time.Time)).Seconds() * 1e3
		heard.mutex.Lock()
		heard.ms = append(heard.ms, took)
		heard.mutex.Unlock()
	}
}

// Restart notes that a watcher lost its place and began again at the newest state. Such a watcher
// may miss events; they are counted.
func (heard *Heard) Restart(watcher int) { heard.watchers[watcher].restarts.Add(1) }

// Restarts returns how often a watcher began again.
func (heard *Heard) Restarts() (restarts int64) {
	for i := range heard.watchers {
		restarts += heard.watchers[i].restarts.Load()
	}
	return restarts
}

// missing returns how many events of so many writes have not come: lost to watchers that never
// began again, and missed by those that did.
func (heard *Heard) missing(writes int64) (lost, missed int64) {
	for i := range heard.watchers {
		each := &heard.watchers[i]
		if absent := writes - each.events.Load(); each.restarts.Load() > 0 {
			missed += absent
		} else {
			lost += absent
		}
	}
	return lost, missed
}

// WriteUnderWatchers writes one value after the other while load.Clients watchers call heard.Event.
// The rate is that of the writer, p50 and p99 are from the begin of a write to each watcher's event.
// write returns what Event is called with. Ends the program if an event does not come to a watcher
// that never began again.
func WriteUnderWatchers(load Load, heard *Heard, next func() any, write func(any) error) {
	from := time.Now().Add(load.WarmUp)
	until := from.Add(load.Seconds)
	var total, measured int64
	var before float64
	var measuredFrom time.Time
	for time.Now().Before(until) {
		if !heard.isOn.Load() && !time.Now().Before(from) {
			before, measuredFrom = processorSeconds(), time.Now()
			fmt.Println("BEGIN")
			heard.isOn.Store(true)
		}
		written := next()
		heard.began.Store(written, time.Now())
		if err := write(written); err != nil {
			Fail(err)
		}
		total++
		if heard.isOn.Load() {
			measured++
		}
	}
	seconds := time.Since(measuredFrom).Seconds()
	used := processorSeconds() - before
	fmt.Println("END")
	lost, missed := heard.missing(total)
	for deadline := time.Now().Add(endSecondsMax); lost+missed > 0 && time.Now().Before(deadline); {
		time.Sleep(settle / 100)
		lost, missed = heard.missing(total)
	}
	if lost > 0 {
		Fail(fmt.Errorf("%d of %d events did not come", lost, total*int64(load.Clients)))
	}
	heard.mutex.Lock()
	defer heard.mutex.Unlock()
	found := newFigures(load, seconds, int(measured), heard.ms, 0, used)
	found.WatchRestarts, found.EventsMissed = heard.Restarts(), missed
	found.print()
}
