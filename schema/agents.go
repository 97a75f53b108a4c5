package schema

import "time"

// RunMessage is a message of the queue agents as an orchestrator gets it: a call that starts a run, or a wake-up.
type RunMessage struct {
	Run      string // id of the run that is to be worked on
	Call     *Call  // nil: a wake-up
	Seq      uint64 // WORK sequence
	Delivery uint64 // from 1
}

// TakenAct is what becomes of a RunMessage.
type TakenAct int

// What becomes of a message. The zero act leaves it alone: who lost the run to another owner neither acknowledges nor
// gives back, because that owner may hold the same message.
const (
	TakenLeave  TakenAct = iota // neither ack nor nak
	TakenDone                   // the work is done: ack
	TakenBusy                   // the run is another's, or handed back: nak
	TakenCannot                 // this orchestrator lacks what the run needs: nak
	TakenDead                   // nobody can do it: dead letter, then terminate
)

// Taken is what an orchestrator did with a RunMessage.
type Taken struct {
	Act    TakenAct
	After  time.Duration // before a message that is given back comes again
	Reason string        // for people
}
