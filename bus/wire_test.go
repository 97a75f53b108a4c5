package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// foreign is a program that shares nothing with this module but the wire contract.
type foreign struct {
	t   testing.TB
	nc  *nats.Conn
	srv *bustest.Servers
}

func stranger(t testing.TB, srv *bustest.Servers) foreign {
	t.Helper()
	nc, err := nats.Connect(srv.URL(), srv.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return foreign{t, nc, srv}
}

// listen subscribes before something happens.
func (f foreign) listen(subject string) *nats.Subscription {
	f.t.Helper()
	sub, err := f.nc.SubscribeSync(subject)
	if err == nil {
		err = f.nc.Flush()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.srv.Heard(f.t, f.nc)
	return sub
}

func (f foreign) next(sub *nats.Subscription) *nats.Msg {
	f.t.Helper()
	m, err := sub.NextMsg(patience)
	if err != nil {
		f.t.Fatalf("%s: %v", sub.Subject, err)
	}
	return m
}

// say sends a core message, as `nats pub` does, and returns when the server has it.
func (f foreign) say(subject string, data []byte) {
	f.t.Helper()
	err := f.nc.Publish(subject, data)
	if err == nil {
		err = f.nc.Flush()
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// store publishes with an acknowledgement; code is the stream's refusal, 0 for none.
func (f foreign) store(subject string, data []byte, header ...string) (seq uint64, code int) {
	f.t.Helper()
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	for i := 0; i < len(header); i += 2 {
		m.Header[header[i]] = []string{header[i+1]}
	}
	reply, err := f.nc.RequestMsg(m, patience)
	if err != nil {
		f.t.Fatalf("%s: %v", subject, err)
	}
	var ack struct {
		Seq   uint64
		Error struct {
			Code int `json:"err_code"`
		}
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		f.t.Fatal(err)
	}
	return ack.Seq, ack.Error.Code
}

// api asks JetStream and returns the answer as JSON.
func (f foreign) api(subject, body string) map[string]any {
	f.t.Helper()
	reply, err := f.nc.Request("$JS.API."+subject, []byte(body), patience)
	if err != nil {
		f.t.Fatalf("%s: %v", subject, err)
	}
	var answer map[string]any
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		f.t.Fatal(err)
	}
	return answer
}

// has tells whether a fact is stored.
func (f foreign) has(subject string) bool {
	f.t.Helper()
	return f.api("STREAM.MSG.GET.JC_RUNS", `{"last_by_subj":"`+subject+`"}`)["message"] != nil
}

// serverClock is the time on the clock of the work stream's leader.
func (f foreign) serverClock() time.Time {
	f.t.Helper()
	ts, err := time.Parse(time.RFC3339Nano, f.api("STREAM.INFO.JC_WORK", "")["ts"].(string))
	if err != nil {
		f.t.Fatal(err)
	}
	return ts
}

// awaitResult reads a result that a subscription heard.
func (f foreign) awaitResult(sub *nats.Subscription) schema.Result {
	f.t.Helper()
	r, err := schema.DecodeResult(f.next(sub).Data)
	if err != nil {
		f.t.Fatal(err)
	}
	return *r
}

func pack(t testing.TB, v any) []byte {
	t.Helper()
	data, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestForeignCallInEveryForm(t *testing.T) {
	t.Parallel()
	srv := server(t)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"echo": echo}})
	f := stranger(t, srv)
	whole := map[string]any{"v": 1, "run": "r", "turn": 1, "tool": "echo", "idempotent": true}
	with := func(index int, more map[string]any) map[string]any {
		m := maps.Clone(whole)
		m["index"] = index
		maps.Copy(m, more)
		return m
	}
	for i, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"json, args an object", []byte(`{"run":"r","turn":1,"index":0,"tool":"echo","idempotent":true,"args":{"a": [1, 2.50]}}`), `{"a":[1,2.50]}`},
		{"json, args a string", []byte(` {"run":"r","turn":1,"index":1,"tool":"echo","args":"{\"a\":1}"}`), `{"a":1}`},
		{"json, args null", []byte(`{"run":"r","turn":1,"index":2,"tool":"echo","args":null}`), `{}`},
		{"json, args absent", []byte(`{"run":"r","turn":1,"index":3,"tool":"echo"}`), `{}`},
		{"msgpack", pack(t, with(4, map[string]any{"args": `{"a":1}`})), `{"a":1}`},
		{"msgpack, unknown keys", pack(t, with(5, map[string]any{"args": `{"a":1}`, "later": map[string]any{"x": []int{1, 2}}, "zz": nil})), `{"a":1}`},
		{"msgpack, wide numbers", pack(t, with(6, map[string]any{"args": `{}`, "turn": uint64(1), "timeout_ms": int64(60000)})), `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub := f.listen(fmt.Sprintf("jc.live.r.result.1.%d.test", i))
			f.say("jc.work.test.0", c.data)
			r := f.awaitResult(sub)
			if !r.OK || r.Output != c.want || r.Run != "r" || r.Turn != 1 || r.Index != i {
				t.Errorf("%+v, want output %s", r, c.want)
			}
			if want := !strings.Contains(string(c.data), "idempotent"); f.has(fmt.Sprintf("jc.run.r.begin.1.%d.test", i)) != want {
				t.Errorf("begin is there: %t, want %t: absent idempotent is run-once", !want, want)
			}
		})
	}
}

func TestDeadlineThatIsMissing(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	left := func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		end, _ := ctx.Deadline()
		return c.Done(strconv.FormatInt(time.Until(end).Milliseconds(), 10)), nil
	}
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"left": left}})
	for i, c := range []struct {
		name, more, header string
		want               time.Duration
	}{
		{"its own timeout counts from the time of storing", `,"timeout_ms":60000`, "", time.Minute},
		{"none at all", ``, "", 300 * time.Second},
		{"negative timeout", `,"timeout_ms":-1`, "", 300 * time.Second},
		{"unreadable header", ``, "soon", 300 * time.Second},
		{"header", `,"timeout_ms":60000`, strconv.FormatInt(f.serverClock().Add(100*time.Second).UnixMilli(), 10), 100 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub := f.listen(fmt.Sprintf("jc.live.r.result.1.%d.test", i))
			var header []string
			if c.header != "" {
				header = []string{"Jc-Deadline", c.header}
			}
			f.store("jc.work.test.0", fmt.Appendf(nil, `{"run":"r","turn":1,"index":%d,"tool":"left","idempotent":true%s}`, i, c.more), header...)
			ms, err := strconv.ParseInt(f.awaitResult(sub).Output, 10, 64)
			got := time.Duration(ms) * time.Millisecond
			if err != nil || got > c.want+time.Second || got < c.want-10*time.Second {
				t.Errorf("%v left, %v, want a little less than %v", got, err, c.want)
			}
		})
	}
}

// A call that waited past its deadline is settled and not started.
func TestExpiredCallIsNotStarted(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"never": neverRun(t), "never" + runOnce: neverRun(t)}})
	past := strconv.FormatInt(f.serverClock().Add(-time.Millisecond).UnixMilli(), 10)
	for i, tool := range []string{"never", "never" + runOnce} {
		sub := f.listen(fmt.Sprintf("jc.live.r.result.1.%d.test", i))
		f.store("jc.work.test.0", fmt.Appendf(nil, `{"run":"r","turn":1,"index":%d,"tool":%q,"idempotent":%t}`, i, tool, i == 0), "Jc-Deadline", past)
		if r := f.awaitResult(sub); r.OK || r.Error.Type != schema.Timeout || r.StartedMS != 0 {
			t.Errorf("%s: %+v", tool, r)
		}
		if f.has(fmt.Sprintf("jc.run.r.begin.1.%d.test", i)) {
			t.Errorf("%s has begun", tool)
		}
	}
}

func neverRun(t testing.TB) func(context.Context, *schema.Call) (schema.Result, *schema.Pending) {
	return func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		t.Errorf("%s ran", c)
		return c.Done(""), nil
	}
}
