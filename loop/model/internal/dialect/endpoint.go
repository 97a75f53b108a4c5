package dialect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/jetcrew/jetcrew/loop/model"
)

// maxErrorBody bounds what is read of a refused request's answer, in bytes.
const maxErrorBody = 64 << 10

// Endpoint is where a client sends its requests. It makes the errors, which say where and what to do and never hold
// the key.
type Endpoint struct {
	Provider string // openai or anthropic
	Model    string
	KeyVar   string // environment variable that holds the key
	URLVar   string // environment variable that holds the base URL
	URL      string // base URL
	Key      string
}

// Check returns an error that says what is wrong with the endpoint's settings. keyless: a request without a key may
// be accepted.
func (e *Endpoint) Check(keyless bool) error {
	u, err := url.Parse(e.URL)
	switch {
	case e.Model == "":
		return &model.Error{Kind: model.BadRequest, Message: fmt.Sprintf("%s: no model is named; name one as %s/<model>", e.Provider, e.Provider)}
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return &model.Error{Kind: model.BadRequest, Message: fmt.Sprintf("%s: the base URL is not an http or https address; check %s", e.Provider, e.URLVar)}
	case e.Key == "" && !keyless:
		return &model.Error{Kind: model.Auth, Message: fmt.Sprintf("%s: no key; set %s in the environment, or %s to ask another endpoint", e.Provider, e.KeyVar, e.URLVar)}
	}
	return nil
}

// Guard is a middleware of both SDKs: an answer with an error status becomes a model.Error here, since the SDKs
// forget the status of an answer that is not in their own form.
func (e *Endpoint) Guard(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err != nil {
		return res, err
	}
	if res.StatusCode < http.StatusBadRequest {
		res.Body = &shortBody{ReadCloser: res.Body, left: maxAnswer, over: e.fault(model.BadRequest, 0,
			fmt.Sprintf("the answer is longer than %d MiB; ask for less, or check %s", maxAnswer>>20, e.URLVar), nil)}
		return res, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	if err != nil && res.StatusCode < http.StatusInternalServerError && len(body) == 0 {
		return nil, e.Transport(req.Context(), err)
	}
	return nil, e.Refusal(res.StatusCode, res.Header, body)
}

// maxAnswer bounds an answer as it comes over the network, in bytes: a thousand times what models give.
const maxAnswer = 64 << 20

// shortBody is a body that ends with the error over when it is longer than it may be.
type shortBody struct {
	io.ReadCloser
	left int64
	over error
}

func (b *shortBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.over
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Transport returns the error of a request that got no whole answer: that of ctx when ctx has ended, err itself when
// it is a model.Error, else one of kind Unavailable.
func (e *Endpoint) Transport(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("model %s/%s: %w", e.Provider, e.Model, ctx.Err())
	}
	var known *model.Error
	if errors.As(err, &known) {
		return known
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return e.fault(model.BadRequest, 0, "its certificate is not trusted; check "+e.URLVar, cert)
	}
	return e.fault(model.Unavailable, 0, fmt.Sprintf("the connection failed: %s; check that the endpoint runs (%s)", cause(err), e.URLVar), cut(err))
}

// Broken returns the error of an answer that cannot be used though the request was accepted: asking again may help.
func (e *Endpoint) Broken(what string, err error) error {
	if err != nil {
		what += ": " + err.Error()
	}
	return e.fault(model.Unavailable, 0, what, err)
}

// NotAnAPI returns the error of an answer in a form that no endpoint of this provider gives, such as a web page.
func (e *Endpoint) NotAnAPI(contentType string) error {
	return e.fault(model.BadRequest, 0, fmt.Sprintf("the answer is %q, not that of a model; check %s", contentType, e.URLVar), nil)
}

func (e *Endpoint) fault(kind model.Kind, status int, what string, err error) *model.Error {
	text := fmt.Sprintf("%s at %s, model %s: %s", e.Provider, e.place(), e.Model, what)
	return &model.Error{Kind: kind, Status: status, Message: e.conceal(text), Err: err}
}

// conceal takes the key out of a text; some endpoints repeat it in their errors.
func (e *Endpoint) conceal(s string) string {
	if e.Key == "" {
		return s
	}
	return strings.ReplaceAll(s, e.Key, "[key]")
}

// place returns the base URL without what may be secret in it.
func (e *Endpoint) place() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return "a bad base URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return strings.TrimSuffix(u.String(), "/")
}

// cause says what went wrong without the address, which may hold a password and stands in the message anyway.
func cause(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "it was cut in the middle"
	}
	return err.Error()
}

// cut returns err without the address of the request.
func cut(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
