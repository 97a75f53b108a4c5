package schema

// Wake is a wake-up on the queue agents: somebody shall look after the run.
type Wake struct {
	Payload
	Run  string `msgpack:"run" json:"run"`   // id of the run
	Wake bool   `msgpack:"wake" json:"wake"` // always true; it tells a wake-up from a call
}
