package bus

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// TestWatermarkStandsWhoeverLeaves: somebody who does not wait for the answer lets nobody else in.
func TestWatermarkStandsWhoeverLeaves(t *testing.T) {
	t.Parallel()
	b := &Bus{log: slog.New(slog.DiscardHandler)}
	b.room.at, b.room.full = time.Now().Add(-time.Minute), schema.ErrNoRoom
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = b.checkRoom(ctx) // whatever it says
	if !errors.Is(b.room.full, schema.ErrNoRoom) {
		t.Error("the next runs are let in")
	}
}

func TestWatermark(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ info, account, full string }{
		"no limits":              {`{"config":{"max_msgs":-1,"max_bytes":-1},"state":{"messages":1000000,"bytes":1000000}}`, `{"storage":1000000,"limits":{"max_storage":-1}}`, ""},
		"limits of nothing":      {`{"config":{},"state":{"messages":1,"bytes":1}}`, `{"storage":1,"limits":{"max_storage":0}}`, ""},
		"below every mark":       {`{"config":{"max_msgs":100,"max_bytes":1000},"state":{"messages":89,"bytes":899}}`, `{"storage":899,"limits":{"max_storage":1000}}`, ""},
		"as many messages":       {`{"config":{"max_msgs":100,"max_bytes":-1},"state":{"messages":90,"bytes":899}}`, `{}`, "90 of 100 messages of the stream of runs"},
		"as many bytes":          {`{"config":{"max_msgs":-1,"max_bytes":1000},"state":{"messages":90,"bytes":900}}`, `{}`, "900 of 1000 bytes of the stream of runs"},
		"the account's storage":  {`{"config":{"max_bytes":1000},"state":{"bytes":1}}`, `{"storage":950,"limits":{"max_storage":1000}}`, "950 of 1000 bytes of the account's storage"},
		"more than there may be": {`{"config":{"max_bytes":1000},"state":{"bytes":2000}}`, `{}`, "2000 of 1000"},
	} {
		u := new(usage)
		if err := errors.Join(json.Unmarshal([]byte(tt.info), u), json.Unmarshal([]byte(tt.account), &u.account)); err != nil {
			t.Fatal(err)
		}
		err := u.full()
		if (err != nil) != (tt.full != "") || err != nil && (!errors.Is(err, schema.ErrNoRoom) || !strings.Contains(err.Error(), tt.full)) {
			t.Errorf("%s: %v, want %q", name, err, tt.full)
		}
	}
}
