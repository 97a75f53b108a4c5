package schema

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind names what a fact says; it is the first token of the fact's subject below its run.
type Kind string

// The kinds of facts.
const (
	KindOpen    Kind = "open"
	KindCtl     Kind = "ctl"
	KindSay     Kind = "say"
	KindTurn    Kind = "turn"
	KindSent    Kind = "sent"
	KindBegin   Kind = "begin"
	KindBack    Kind = "back"
	KindAsk     Kind = "ask"
	KindVerdict Kind = "verdict"
	KindResult  Kind = "result"
	KindView    Kind = "view"
	KindFold    Kind = "fold"
	KindAnswer  Kind = "answer"
	KindClose   Kind = "close"
)

// Key names one fact of a run. A fact is written once, so a key is also the slot that a writer competes for.
// Fields that a kind does not use are zero. The zero Key names no fact.
type Key struct {
	Kind     Kind
	N        int    // turn (from 1), or the number of a ctl, say or answer (from 1) or fold (from 0)
	I        int    // index of the call within its turn (from 0)
	K        int    // number of a sent, ask or verdict (from 1)
	Queue    string // queue of a begin, back or result
	Seq      uint64 // back: WORK sequence
	Delivery uint64 // back: delivery of that sequence
	Run      string // of a guard on a fact of another run: its id
}

// Keys of each kind. Numbers count from 1, indexes from 0.
func OpenKey() Key                         { return Key{Kind: KindOpen} }
func CloseKey() Key                        { return Key{Kind: KindClose} }
func CtlKey(k int) Key                     { return Key{Kind: KindCtl, N: k} }
func SayKey(k int) Key                     { return Key{Kind: KindSay, N: k} }
func TurnKey(n int) Key                    { return Key{Kind: KindTurn, N: n} }
func FoldKey(n int) Key                    { return Key{Kind: KindFold, N: n} }
func AnswerKey(k int) Key                  { return Key{Kind: KindAnswer, N: k} }
func SentKey(n, k int) Key                 { return Key{Kind: KindSent, N: n, K: k} }
func ViewKey(n, i int) Key                 { return Key{Kind: KindView, N: n, I: i} }
func AskKey(n, i, k int) Key               { return Key{Kind: KindAsk, N: n, I: i, K: k} }
func VerdictKey(n, i, k int) Key           { return Key{Kind: KindVerdict, N: n, I: i, K: k} }
func BeginKey(n, i int, queue string) Key  { return Key{Kind: KindBegin, N: n, I: i, Queue: queue} }
func ResultKey(n, i int, queue string) Key { return Key{Kind: KindResult, N: n, I: i, Queue: queue} }

func BackKey(n, i int, q string, s, d uint64) Key {
	return Key{Kind: KindBack, N: n, I: i, Queue: q, Seq: s, Delivery: d}
}

// IsZero tells whether k names no fact.
func (k Key) IsZero() bool { return k.Kind == "" }

// String returns the subject tokens of the fact below its run, such as "result.3.0.files".
func (k Key) String() string {
	b := make([]byte, 0, 48)
	b = append(b, k.Kind...)
	switch k.Kind {
	case KindCtl, KindSay, KindTurn, KindFold, KindAnswer:
		b = appendToken(b, k.N)
	case KindSent:
		b = appendToken(appendToken(b, k.N), k.K)
	case KindView:
		b = appendToken(appendToken(b, k.N), k.I)
	case KindAsk, KindVerdict:
		b = appendToken(appendToken(appendToken(b, k.N), k.I), k.K)
	case KindBegin, KindResult, KindBack:
		b = appendToken(appendToken(b, k.N), k.I)
		b = append(append(b, '.'), k.Queue...)
		if k.Kind == KindBack {
			b = strconv.AppendUint(append(b, '.'), k.Seq, 10)
			b = strconv.AppendUint(append(b, '.'), k.Delivery, 10)
		}
	}
	return string(b)
}

func appendToken(b []byte, n int) []byte { return strconv.AppendInt(append(b, '.'), int64(n), 10) }

// ParseKey reads what String writes. Anything else is an error: a stranger's subject must not become a fact.
func ParseKey(s string) (Key, error) {
	kind, rest, _ := strings.Cut(s, ".")
	k := Key{Kind: Kind(kind)}
	var fields []any
	switch k.Kind {
	case KindOpen, KindClose:
	case KindCtl, KindSay, KindTurn, KindFold, KindAnswer:
		fields = []any{&k.N}
	case KindSent:
		fields = []any{&k.N, &k.K}
	case KindView:
		fields = []any{&k.N, &k.I}
	case KindAsk, KindVerdict:
		fields = []any{&k.N, &k.I, &k.K}
	case KindBegin, KindResult:
		fields = []any{&k.N, &k.I, &k.Queue}
	case KindBack:
		fields = []any{&k.N, &k.I, &k.Queue, &k.Seq, &k.Delivery}
	default:
		return Key{}, fmt.Errorf("fact %q: unknown kind", s)
	}
	for _, f := range fields {
		var tok string
		tok, rest, _ = strings.Cut(rest, ".")
		if err := scanToken(tok, f); err != nil {
			return Key{}, fmt.Errorf("fact %q: token %q: %w", s, tok, err)
		}
	}
	if rest != "" || k.String() != s {
		return Key{}, fmt.Errorf("fact %q: not in its one form", s)
	}
	return k, nil
}

func scanToken(tok string, into any) (err error) {
	switch p := into.(type) {
	case *int:
		var n uint64
		n, err = strconv.ParseUint(tok, 10, 31)
		*p = int(n)
	case *uint64:
		*p, err = strconv.ParseUint(tok, 10, 64)
	case *string:
		if !ValidID(tok) {
			return fmt.Errorf("not a queue")
		}
		*p = tok
	}
	return err
}

// Fact is one recorded fact of a run as it lies in the stream.
type Fact struct {
	Run  string
	Key  Key
	Seq  uint64    // sequence in the stream of runs
	Time time.Time // when it was stored, on the server's clock
	Data []byte    // payload as stored; Decode reads it
}
