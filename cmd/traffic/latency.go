package traffic

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// latencies counts durations in buckets that are at most 1/32 wide of what they hold.
// It is safe for concurrent use.
type latencies struct {
	buckets [64 * fine]atomic.Uint64
	longest atomic.Int64
}

// fine is how many buckets there are between a duration and its double.
const fine = 32

// bucketOf returns the bucket of a number of microseconds.
func bucketOf(us uint64) int {
	if us < fine {
		return int(us)
	}
	shift := bits.Len64(us) - bits.Len64(fine)
	return (shift+1)*fine + int(us>>shift) - fine
}

// upper returns the largest number of microseconds in a bucket.
func upper(bucket int) uint64 {
	if bucket < fine {
		return uint64(bucket)
	}
	shift := bucket/fine - 1
	return uint64(fine+bucket%fine+1)<<shift - 1
}

func (l *latencies) add(d time.Duration) {
	l.buckets[bucketOf(uint64(max(0, d.Microseconds())))].Add(1)
	for {
		longest := l.longest.Load()
		if int64(d) <= longest || l.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// Latency is how long requests took until they were answered, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

func (l *latencies) summary() Latency {
	return Latency{l.quantile(0.5), l.quantile(0.9), l.quantile(0.99), milliseconds(time.Duration(l.longest.Load()))}
}

// quantile returns how long the share q of all took at most, in milliseconds.
func (l *latencies) quantile(q float64) float64 {
	var total uint64
	for i := range l.buckets {
		total += l.buckets[i].Load()
	}
	rest := uint64(math.Ceil(q * float64(total)))
	for i := range l.buckets {
		if n := l.buckets[i].Load(); n < rest {
			rest -= n
			continue
		}
		return min(float64(upper(i))/1000, milliseconds(time.Duration(l.longest.Load())))
	}
	return 0
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
