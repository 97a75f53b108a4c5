package tracing

import (
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// carrier is message headers as the propagators want them. It is a plain map, so nats.Header converts to it. Keys are
// written exactly as given, unlike propagation.HeaderCarrier, which goes through http.Header and would write
// "Traceparent"; they are read in any case, since clients in other languages write what they like.
type carrier map[string][]string

var _ propagation.TextMapCarrier = carrier(nil)

// Get returns the one value of key, "" without any. Of a header that came twice, only tracestate may be joined: two
// traceparents or baggages cannot both be meant, so neither counts.
func (c carrier) Get(key string) string {
	values := c.values(key)
	switch {
	case len(values) == 1:
		return values[0]
	case len(values) > 1 && key == HeaderTracestate:
		return strings.Join(values, ",")
	}
	return ""
}

// Set replaces key, whatever case it had.
func (c carrier) Set(key, value string) {
	for k := range c {
		if len(k) == len(key) && k != key && strings.EqualFold(k, key) {
			delete(c, k)
		}
	}
	c[key] = []string{value}
}

// Keys lists the header names, in no order.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	return keys
}

func (c carrier) values(key string) []string {
	if v, ok := c[key]; ok {
		return v
	}
	for k, v := range c {
		if len(k) == len(key) && strings.EqualFold(k, key) {
			return v
		}
	}
	return nil
}
