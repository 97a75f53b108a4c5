package schema

// View is what memory shows of a call instead of its result's output, when a guard changed the text after the call.
type View struct {
	Payload
	Text string `msgpack:"text" json:"text"` // what memory shows
}
