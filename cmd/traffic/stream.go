package traffic

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// Config says what a stream is like.
type Config struct {
	Seed  uint64
	Start time.Time // when its first event happens, and is due
	// Run names this run of the stream in its event IDs: two runs are different events.
	Run string

	Rate     float64       // events a second, on the average of a day
	Duration time.Duration // from the start until it ends
	Items    int           // different ones
	// Viral is how long after the start the first item goes viral; others follow.
	Viral time.Duration
}

// The limits of a Config.
const (
	MaxRate  = 10_000_000
	MinItems = 10
	MaxItems = 1_000_000
)

// Validate returns all that is wrong with the configuration.
func (c *Config) Validate() error {
	var errs []error
	if !(c.Rate > 0) || c.Rate > MaxRate {
		errs = append(errs, fmt.Errorf("rate: must be more than 0 and at most %d events a second, got %v", MaxRate, c.Rate))
	}
	if c.Items < MinItems || c.Items > MaxItems {
		errs = append(errs, fmt.Errorf("items: must be %d to %d, got %d", MinItems, MaxItems, c.Items))
	}
	if c.Duration < 0 {
		errs = append(errs, fmt.Errorf("duration: must not be negative, got %v", c.Duration))
	}
	return errors.Join(errs...)
}

// What the people of a stream are like: shares of its events.
const (
	shareBots      = 0.02
	shareNobody    = 0.03 // views by nobody
	shareNewcomers = 0.3  // of people; the others come back
	shareLikes     = 0.04
	shareClicks    = 0.06
	shareLate      = 0.01
	shareRepeats   = 0.01

	bots = 20
	// comeBack is how many people have come, on the average, since one was last seen.
	comeBack = 2000
)

// Late events happened that long before they are sent.
const (
	lateLeast = 35 * time.Second
	lateMost  = 10 * time.Minute
)

// A viral item has viralShare of all views within viralRise, keeps that until viralPeak,
// and is half forgotten every viralHalf. The next one comes after viralEvery.
const (
	viralShare = 0.3
	viralRise  = 20 * time.Second
	viralPeak  = 2 * time.Minute
	viralHalf  = 2 * time.Minute
	viralEvery = 15 * time.Minute
)

// Stream makes events up. It is not safe for concurrent use.
type Stream struct {
	cfg    Config
	random *rand.Rand
	zipf   *rand.Zipf
	items  []item
	at     float64 // seconds from the start of the event to come
	people uint64  // that have come
	number uint64  // of the event to come

	// recent has events that may be sent once more.
	recent [256]event
}

// event is one before it is written.
type event struct {
	number uint64
	time   time.Duration // from the start
	item   int
	user   uint64 // from 1; 0: nobody
	bot    bool
	kind   string // as a member of a JSON object
}

const (
	view  = "" // what an event is that does not say
	like  = `,"type":"like"`
	click = `,"type":"click"`
)

// NewStream returns the stream, or all that is wrong with its configuration.
func NewStream(cfg Config) (*Stream, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(cfg.Seed, 0x74726166666963)) //nolint:gosec // a seed is to give the same stream each time
	s := &Stream{cfg: cfg, random: r, zipf: rand.NewZipf(r, 1.1, 3, uint64(cfg.Items-1))}
	s.items = make([]item, cfg.Items)
	for i := range s.items {
		s.items[i] = newItem(i)
	}
	return s, nil
}

// Next appends the next event to b, as a line of JSON, and says when it is due. ok is
// false at the end of the stream.
func (s *Stream) Next(b []byte) (line []byte, due time.Time, ok bool, err error) {
	at := time.Duration(s.at * float64(time.Second))
	if at >= s.cfg.Duration {
		return b, due, false, nil
	}
	s.at += 1 / (s.cfg.Rate * rhythm(at))
	return s.append(b, s.next(at)), s.cfg.Start.Add(at), true, nil
}

// rhythm is how a day goes, beginning at its middle: half as many again, then half as
// many.
func rhythm(at time.Duration) float64 {
	return 1 + math.Sin(2*math.Pi*at.Hours()/24)/2
}

// next makes an event that is sent at that time, or repeats one.
func (s *Stream) next(at time.Duration) event {
	if again := s.recent[s.random.IntN(len(s.recent))]; again.number > 0 && s.random.Float64() < shareRepeats {
		return again
	}
	s.number++
	e := event{number: s.number, time: at, item: s.item(at), kind: view}
	s.who(&e)
	switch x := s.random.Float64(); {
	case x < shareLikes:
		e.kind = like
	case x < shareLikes+shareClicks:
		e.kind = click
	}
	if s.random.Float64() < shareLate {
		e.time -= lateLeast + time.Duration(s.random.Int64N(int64(lateMost-lateLeast)))
	}
	s.recent[e.number%uint64(len(s.recent))] = e
	return e
}

// item chooses what is looked at.
func (s *Stream) item(at time.Duration) int {
	if s.random.Float64() < viral(at-s.cfg.Viral) {
		return s.viralItem(uint64((at - s.cfg.Viral) / viralEvery))
	}
	return int(s.zipf.Uint64())
}

// viral is the share of the views that a viral item has, so long after the first of
// them was found.
func viral(since time.Duration) float64 {
	if since < 0 {
		return 0
	}
	since %= viralEvery
	rise := min(1, since.Seconds()/viralRise.Seconds())
	fall := math.Exp2(-max(0, since-viralPeak).Seconds() / viralHalf.Seconds())
	return viralShare * rise * fall
}

// viralItem is the n-th item that goes viral: one that few have looked at before.
func (s *Stream) viralItem(n uint64) int {
	half := uint64(len(s.items) / 2)
	return int(half + (s.cfg.Seed*2_654_435_761+n*40_503+17)%half)
}

// who chooses a person.
func (s *Stream) who(e *event) {
	switch x := s.random.Float64(); {
	case x < shareBots:
		e.user, e.bot = 1+s.random.Uint64N(bots), true
	case x < shareBots+shareNobody:
	case s.people == 0 || s.random.Float64() < shareNewcomers:
		s.people++
		e.user = s.people
	default:
		e.user = s.people - uint64(s.random.ExpFloat64()*comeBack)%s.people
	}
}

// append writes an event as a line.
func (s *Stream) append(b []byte, e event) []byte {
	it := &s.items[e.item]
	b = append(append(b, '{'), it.name...)
	b = append(b, e.kind...)
	b = append(append(b, `,"id":"`...), s.cfg.Run...)
	b = append(strconv.AppendUint(append(b, '-'), e.number, 10), `","time":`...)
	b = strconv.AppendInt(b, s.cfg.Start.Add(e.time).UnixMilli(), 10)
	if e.user > 0 {
		b = append(b, `,"user":"`...)
		if e.bot {
			b = append(b, "crawler-"...)
		} else {
			b = append(b, "person-"...)
		}
		b = append(strconv.AppendUint(b, e.user, 10), '"')
	}
	if e.bot {
		b = append(b, `,"bot":true`...)
	}
	// A person stays in a country, with a device; what led to this visit changes.
	b = append(b, countries[e.user*7_919%uint64(len(countries))]...)
	b = append(b, devices[e.user*104_729%uint64(len(devices))]...)
	b = append(b, sources[e.number*15_485_863%uint64(len(sources))]...)
	if e.kind == view {
		b = append(b, it.info...)
	}
	return append(b, '}', '\n')
}
