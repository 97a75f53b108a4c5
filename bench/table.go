package main

import (
	"fmt"
	"io"
	"time"
)

// row is a figure with the ratio that must be kept.
type row struct {
	name   string
	unit   string
	format func(float64) string
	get    func(figures) float64
	limit  float64 // jetcrew to raw
	aim    float64
	atMost bool // the ratio must not exceed limit; else it must reach it
}

// rows are the figures and what is wanted of them. On several servers the whole main job is to stay within one and a
// half times the raw exchange.
func (r runCmd) rows() []row {
	batch, throughput := 2.0, 0.5
	if r.Replicas > 1 {
		batch, throughput = 1.5, 1/1.5
	}
	ms := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	list := []row{{"one call, p50", "ms", ms, func(f figures) float64 { return millis(f.one) }, 1.5, 1.2, true}}
	for _, size := range batchSizes {
		list = append(list, row{
			fmt.Sprintf("turn of %d, p50", size), "ms", ms,
			func(f figures) float64 { return millis(f.batch[size]) }, batch, 1.3, true,
		})
	}
	return append(list,
		row{
			fmt.Sprintf("%d outstanding", outstanding), "calls/s", func(v float64) string { return fmt.Sprintf("%.0f", v) },
			func(f figures) float64 { return f.throughput }, throughput, 0.8, false,
		},
		row{
			"CPU per 1,000 calls", "ms", func(v float64) string { return fmt.Sprintf("%.0f", v) },
			func(f figures) float64 { return millis(f.cpu) }, 2.5, 1.5, true,
		})
}

func kind(once bool) string {
	if once {
		return "run-once"
	}
	return "idempotent"
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (c runCmd) print(out io.Writer, once bool, sides map[string][]figures) {
	fmt.Fprintf(out, "\n## %s no-op tool, 300-byte payloads\n\n| | raw | jetcrew | ratio | must | aim | |\n|---|---|---|---|---|---|---|\n", kind(once))
	for _, r := range c.rows() {
		raw, ours := medianOf(sides["raw"], r.get), medianOf(sides["jetcrew"], r.get)
		ratio := ours / raw
		sign, ok := "≤", ratio <= r.limit
		if !r.atMost {
			sign, ok = "≥", ratio >= r.limit
		}
		verdict := "reached"
		if !ok {
			verdict = "MISSED"
		}
		fmt.Fprintf(out, "| %s (%s) | %s | %s | %.2f | %s %.2g | %.2g | %s |\n",
			r.name, r.unit, r.format(raw), r.format(ours), ratio, sign, r.limit, r.aim, verdict)
	}
}

func medianOf(fs []figures, get func(figures) float64) float64 {
	vs := make([]float64, len(fs))
	for i, f := range fs {
		vs[i] = get(f)
	}
	return median(vs)
}
