package worker

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Delay is a range of durations, MIN-MAX or one duration on the command line. A number without a unit takes that of
// the other end.
type Delay struct{ Min, Max time.Duration }

// UnmarshalText reads 50ms, 0-50ms or 10ms-1s.
func (d *Delay) UnmarshalText(text []byte) (err error) {
	low, high, isRange := strings.Cut(string(text), "-")
	if !isRange {
		high = low
	}
	if d.Max, err = time.ParseDuration(high); err == nil {
		if isDigits(low) {
			low += strings.TrimLeft(high, "0123456789.")
		}
		d.Min, err = time.ParseDuration(low)
	}
	if err != nil || d.Min < 0 || d.Max < d.Min {
		return fmt.Errorf("delay %q: want a duration, or two such as 0-50ms", text)
	}
	return nil
}

// String returns d as UnmarshalText reads it.
func (d Delay) String() string { return d.Min.String() + "-" + d.Max.String() }

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Share is a share of attempts from 0 to 1, such as 1% or 0.01 on the command line.
type Share float64

// UnmarshalText reads 1% or 0.01.
func (s *Share) UnmarshalText(text []byte) error {
	number, percent := strings.CutSuffix(string(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("share %q: want 0%% to 100%%, or 0 to 1", text)
	}
	*s = Share(v)
	return nil
}

// String returns s as UnmarshalText reads it.
func (s Share) String() string { return strconv.FormatFloat(float64(s), 'g', -1, 64) }

// dice are the random numbers of one attempt of a call: the same seed, transcript, turn, index and delivery give the
// same ones, whichever worker it is.
func dice(seed uint64, call *schema.Call, delivery uint64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(call.Agent)) // a hash takes everything
	h.Write([]byte{0})
	for _, n := range []uint64{uint64(call.Turn), uint64(call.Index), delivery} {
		h.Write(binary.BigEndian.AppendUint64(nil, n))
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// in returns a duration of the range.
func (d Delay) in(r *rand.Rand) time.Duration {
	return d.Min + time.Duration(r.Int64N(int64(d.Max-d.Min)+1))
}
