package bus

import (
	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
)

// The payloads of core NATS messages. They are hints: losing one costs time, never truth.

// Cancel asks the workers that run calls of a run to end them; Turn and Index name one call, else all are meant.
type Cancel struct {
	schema.Payload
	Reason string `msgpack:"reason" json:"reason"`                   // for people; it stands in the result
	Turn   *int   `msgpack:"turn,omitempty" json:"turn,omitempty"`   // absent: every turn
	Index  *int   `msgpack:"index,omitempty" json:"index,omitempty"` // absent: every call
}

// OwnQuery asks an instance whether it runs a call, as delivered under a WORK sequence.
type OwnQuery struct {
	schema.Payload
	Run   string `msgpack:"run" json:"run"`     // of the call
	Turn  int    `msgpack:"turn" json:"turn"`   // of the call
	Index int    `msgpack:"index" json:"index"` // of the call
	Seq   uint64 `msgpack:"seq" json:"seq"`     // WORK sequence, from its begin fact
}

// OwnReply answers an OwnQuery.
type OwnReply struct {
	schema.Payload
	Running bool `msgpack:"running" json:"running"` // this instance works on the call as delivered under that sequence
}

// Progress is what a running call says before its result.
type Progress struct {
	schema.Payload
	Seq    uint64 `msgpack:"seq" json:"seq"`                           // from 1, of this delivery
	Text   string `msgpack:"text" json:"text"`                         // a piece of output or a state, up to 16 KiB
	Worker string `msgpack:"worker,omitempty" json:"worker,omitempty"` // instance
}

// sendCancel tells the workers to end a call.
func (b *Bus) sendCancel(call *schema.Call, reason string) {
	b.send(b.names.cancel(call.Run), &Cancel{Reason: reason, Turn: &call.Turn, Index: &call.Index})
}

// send publishes a core message. What cannot be sent is logged: the protocol does not lean on it.
func (b *Bus) send(subject string, payload schema.Encodable) {
	data, err := schema.Encode(payload)
	if err == nil {
		err = b.nc.Publish(subject, data)
	}
	if err != nil {
		b.log.Debug("hint not sent", "subject", subject, "error", err)
	}
}

func (f *feed) hearProgress(m *nats.Msg) {
	turn, index, p, ok := f.bus.readProgress(m)
	if !ok {
		return
	}
	f.mu.Lock()
	var of *owner
	for key, o := range f.open {
		if key.N == turn && key.I == index {
			of = o
		}
	}
	f.mu.Unlock()
	if of != nil {
		schema.Progress(of.ctx, p.Text)
	}
}
