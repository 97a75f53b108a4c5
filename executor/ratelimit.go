package executor

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/jetcrew/jetcrew/schema"
)

// RateLimit lets the tools of a worker that pattern names, a name or a glob, together start at most perSecond calls a
// second, and burst at once. A call beyond that is RateLimited, and the model reads when to try again. Each worker
// counts for itself: how many run at once over the whole fleet is bounded by the queue's limit, see bus.Worker.
func RateLimit(pattern string, perSecond float64, burst int) (Wrapper, error) {
	switch {
	case strings.TrimSpace(pattern) == "":
		return nil, fmt.Errorf("rate limit: the pattern is blank; name a tool, or * for all")
	case !(perSecond > 0) || math.IsInf(perSecond, 0):
		return nil, fmt.Errorf("rate limit of %q: %v calls a second; want a number above 0, such as 0.5", pattern, perSecond)
	case burst < 1:
		return nil, fmt.Errorf("rate limit of %q: a burst of %d; want at least 1", pattern, burst)
	}
	limiter := rate.NewLimiter(rate.Limit(perSecond), burst)
	return func(next Execute) Execute {
		return func(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending) {
			if !schema.MatchTool(pattern, "", call.Tool) {
				return next(ctx, call)
			}
			if wait := take(limiter); wait > 0 {
				return refuse(ctx, call, &schema.Error{Type: schema.RateLimited, Message: fmt.Sprintf(
					"too many calls of %s; try again in %v", schema.Cut(call.Tool, 80), wait)})
			}
			return next(ctx, call)
		}
	}, nil
}

// take starts a call, or says after which time one may start.
func take(l *rate.Limiter) (wait time.Duration) {
	now := time.Now()
	if l.AllowN(now, 1) {
		return 0
	}
	const unit = 10 * time.Millisecond
	const most = 1 << 62 // what a time.Duration holds, and room to round it
	wait = time.Duration(min((1-l.TokensAt(now))/float64(l.Limit())*float64(time.Second), most))
	return max(unit, (wait+unit-1)/unit*unit)
}
