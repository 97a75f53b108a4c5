package dialect

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// maxRetryAfter bounds what a provider may ask us to wait.
const maxRetryAfter = 24 * time.Hour

// Refusal returns the error of an answer with an error status.
func (e *Endpoint) Refusal(status int, header http.Header, body []byte) *model.Error {
	r := readRefusal(body)
	kind := r.kind(status)
	err := e.fault(kind, status, e.advice(kind, status, r), nil)
	err.RetryAfter = retryAfter(header)
	return err
}

// StreamRefusal returns the error that a provider sent in the middle of a stream.
func (e *Endpoint) StreamRefusal(body []byte) *model.Error {
	r := readRefusal(body)
	status, _ := strconv.Atoi(r.code)
	if status < 400 || status > 599 {
		status = 0
	}
	kind := r.kind(status)
	return e.fault(kind, status, "in the middle of the answer: "+e.advice(kind, status, r), nil)
}

func (e *Endpoint) advice(kind model.Kind, status int, r refusal) string {
	said := ""
	if r.message != "" {
		said = ": " + r.message
	}
	switch {
	case r.quota():
		return "the account has no quota or credit left" + said + "; top it up, or use another " + e.KeyVar
	case kind == model.Auth && e.Key == "":
		return "a key is wanted" + said + "; set " + e.KeyVar
	case kind == model.Auth:
		return "the key was refused" + said + "; check " + e.KeyVar
	case kind == model.RateLimited:
		return "the rate limit is reached" + said
	case kind == model.Unavailable:
		return "the provider has trouble" + said
	case kind == model.Overflow:
		return "the prompt is larger than the model takes" + said
	case kind == model.Refused:
		return "the provider refused the content of the request" + said
	case status == http.StatusNotFound:
		return "not found" + said + "; check the model's name and " + e.URLVar
	}
	return "the request was refused" + said
}

// refusal is what a provider says about an error, in whichever form.
type refusal struct {
	typ, code, message string
}

func readRefusal(body []byte) refusal {
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message Str             `json:"message"`
		Detail  Str             `json:"detail"`
		Type    Str             `json:"type"`
		Code    Str             `json:"code"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return refusal{message: plain(string(body))}
	}
	var in struct {
		Type    Str `json:"type"`
		Code    Str `json:"code"`
		Message Str `json:"message"`
		Details *struct {
			Code Str `json:"error_code"`
		} `json:"details"`
	}
	var text Str
	switch {
	case json.Unmarshal(doc.Error, &in) == nil && in.Message != nil:
		r := refusal{in.Type.Text(), in.Code.Text(), in.Message.Text()}
		if r.code == "" && in.Details != nil {
			r.code = in.Details.Code.Text()
		}
		return r.cut()
	case json.Unmarshal(doc.Error, &text) == nil && text != nil:
		return refusal{message: text.Text()}.cut()
	case doc.Message != nil:
		return refusal{doc.Type.Text(), doc.Code.Text(), doc.Message.Text()}.cut()
	}
	return refusal{message: doc.Detail.Text()}.cut()
}

func (r refusal) cut() refusal {
	r.message = plain(r.message)
	return r
}

// plain returns a message in one bounded line, and nothing of a web page.
func plain(s string) string {
	s = strings.Join(strings.Fields(schema.CleanText(s)), " ")
	if strings.HasPrefix(s, "<") {
		return ""
	}
	return schema.Cut(strings.TrimRight(s, ".;"), 500)
}

func (r refusal) kind(status int) model.Kind {
	switch {
	case r.overflow() || status == http.StatusRequestEntityTooLarge:
		return model.Overflow
	case r.policy():
		return model.Refused
	case r.quota() || status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusPaymentRequired:
		return model.Auth
	case r.is("authentication_error", "permission_error", "invalid_api_key"):
		return model.Auth
	case status == http.StatusTooManyRequests || r.is("rate_limit_error", "rate_limit_exceeded", "requests", "tokens"):
		return model.RateLimited
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooEarly:
		return model.Unavailable
	case r.is("invalid_request_error", "not_found_error", "BadRequestError") || status >= 400:
		return model.BadRequest
	}
	return model.Unavailable // in the middle of a stream, and nothing says that asking again is in vain
}

func (r refusal) is(words ...string) bool {
	for _, w := range words {
		if r.typ == w || r.code == w {
			return true
		}
	}
	return false
}

func (r refusal) says(parts ...string) bool {
	text := strings.ToLower(r.message)
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// overflow: only OpenAI has a code for it; the others say it in the message.
func (r refusal) overflow() bool {
	return r.is("context_length_exceeded", "exceed_context_size_error", "request_too_large", "string_above_max_length") ||
		r.says("prompt is too long", "maximum context length", "context length exceeded", "exceeds the available context size",
			"exceed context limit", "exceeds the context window", "exceeds the maximum number of tokens", "input is too long")
}

func (r refusal) policy() bool {
	return r.is("content_filter", "content_policy_violation", "invalid_prompt", "moderation_blocked") ||
		r.says("content filtering policy", "content management policy", "usage policies", "usage policy", "safety system")
}

func (r refusal) quota() bool {
	return r.is("insufficient_quota", "billing_error", "billing_not_active", "billing_hard_limit_reached",
		"enforced_spend_limit_reached", "contract_spend_limit_reached") || r.says("credit balance is too low")
}

// retryAfter reads how long a provider asks to wait: milliseconds, seconds or a date; 0: it does not ask.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return bounded(ms, time.Millisecond)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return bounded(s, time.Second)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date")) // the provider's own clock, where it shows it
	if err != nil {
		now = time.Now()
	}
	return bounded(at.Sub(now).Seconds(), time.Second)
}

func bounded(n float64, unit time.Duration) time.Duration {
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	if n > float64(maxRetryAfter/unit) {
		return maxRetryAfter
	}
	return time.Duration(n * float64(unit))
}
