package mcp

import (
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// transport returns a fresh way to the server, and what ends it for good; end may be called several times.
func (s *Server) transport() (t sdk.Transport, end func(), err error) {
	if s.cfg.URL != "" {
		base := http.DefaultTransport.(*http.Transport).Clone()
		return &sdk.StreamableClientTransport{
			Endpoint: s.cfg.URL,
			HTTPClient: &http.Client{
				Transport:     &headers{next: base, header: s.cfg.Header},
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would carry the headers, and the call, elsewhere
			},
		}, base.CloseIdleConnections, nil
	}
	p, err := start(s.cfg)
	if err != nil {
		return nil, nil, err
	}
	return &sdk.IOTransport{Reader: p.output, Writer: p.input}, p.end, nil
}

// headers sets the headers of each request.
type headers struct {
	next   http.RoundTripper
	header map[string]string
}

func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(h.header) > 0 {
		r = r.Clone(r.Context())
		for name, value := range h.header {
			r.Header.Set(name, value)
		}
	}
	return h.next.RoundTrip(r)
}
