package openai

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/internal/dialect"
)

// Provider is the provider's name in an agent file.
const Provider = "openai"

// defaultURL is OpenAI's own endpoint.
const defaultURL = "https://api.openai.com/v1"

// The environment variables that fill in a Config.
const (
	keyVar = "OPENAI_API_KEY"
	urlVar = "OPENAI_BASE_URL"
)

// Config says which model is asked, and where.
type Config struct {
	Model      string       // required, in the endpoint's words
	APIKey     string       // default: OPENAI_API_KEY; an endpoint other than OpenAI's may need none
	BaseURL    string       // default: OPENAI_BASE_URL, else https://api.openai.com/v1
	MaxTools   int          // how many tools a request may have; default 128
	HTTPClient *http.Client // default: the SDK's, which waits up to 10 minutes for an answer to begin
}

// Client asks one model. It may be used from several goroutines.
type Client struct {
	sdk openai.Client
	at  dialect.Endpoint
	fit dialect.Fitter
}

// MaxTools returns how many tools a request may have.
func (c *Client) MaxTools() int { return c.fit.Max }

// New returns a client. The error is a *model.Error: of kind Auth when OpenAI's own endpoint shall be asked without a
// key, of kind BadRequest when the model or the address is wrong.
func New(c Config) (*Client, error) {
	at := dialect.Endpoint{
		Provider: Provider, Model: c.Model, KeyVar: keyVar, URLVar: urlVar,
		URL: cmp.Or(c.BaseURL, os.Getenv(urlVar), defaultURL),
		Key: cmp.Or(c.APIKey, os.Getenv(keyVar)),
	}
	if err := at.Check(!isDefault(at.URL)); err != nil {
		return nil, err
	}
	client := &Client{at: at, fit: dialect.Fitter{Rule: toolRule, Max: cmp.Or(max(c.MaxTools, 0), dialect.DefaultMaxTools)}}
	opts := []option.RequestOption{
		option.WithBaseURL(at.URL),
		option.WithAPIKey(at.Key),
		option.WithAdminAPIKey(""), // the SDK would take it from the environment and send it to any endpoint
		option.WithMaxRetries(0),   // the loop has the one place where a request is asked again
		option.WithMiddleware(client.at.Guard),
	}
	if c.HTTPClient != nil {
		opts = append(opts, option.WithHTTPClient(c.HTTPClient))
	}
	client.sdk = openai.NewClient(opts...)
	return client, nil
}

func isDefault(u string) bool { return strings.TrimSuffix(u, "/") == defaultURL }

// Generate asks for the next answer. Failures are *model.Error; when ctx ends, the error wraps that of ctx. The
// answer is streamed when the request has a Delta. A tool with which the provider would refuse the whole request is left
// out and named in Unfit.
func (c *Client) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	names := dialect.NewNames(req.Tools, req.Messages)
	fit, unfit := c.fit.Fit(req.Tools)
	body, err := encodeRequest(c.at.Model, req, fit, names)
	if err != nil {
		return nil, err
	}
	var opts []option.RequestOption
	if req.Delta != nil {
		opts = append(opts, option.WithHeader("Accept", "text/event-stream"))
	}
	var res *http.Response
	if err := c.sdk.Post(ctx, "chat/completions", body, &res, opts...); err != nil {
		return nil, c.at.Transport(ctx, err)
	}
	defer res.Body.Close()
	out, err := c.read(res, req.Delta)
	if err != nil {
		return nil, c.at.Transport(ctx, err)
	}
	out.Unfit = unfit
	for i := range out.Calls {
		out.Calls[i].Name = names.Decode(out.Calls[i].Name)
	}
	return out, nil
}
