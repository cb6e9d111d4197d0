package measure

import (
	"testing"
	"time"
)

func TestOnlyAWatcherThatBeganAgainMayMissEvents(t *testing.T) {
	heard := NewHeard(3)
	for _, written := range []string{"a", "b"} {
		heard.began.Store(written, time.Now())
		heard.Event(0, written)
	}
	heard.Event(1, "b")
	heard.Event(1, "never written")
	heard.Restart(1)
	heard.Event(2, "a")
	if lost, missed := heard.missing(2); lost != 1 || missed != 1 {
		t.Fatalf("lost %d, missed %d", lost, missed)
	}
	if heard.Restarts() != 1 {
		t.Fatalf("%d restarts", heard.Restarts())
	}
}
