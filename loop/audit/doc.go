// Package audit projects the facts of a run to an audit trail: who asked, what was decided about each call and by which
// rule, who approved it, which worker ran it, and how it ended.
//
// It owns the form of a record, in which contents stand as digests only, and the check of a run's facts against each
// other. It refuses to own facts and where records go: nothing is written for it on the way of a call, and a sink is a
// function.
//
//	trail := audit.New(run)
//	for _, f := range facts {
//		for _, r := range trail.Apply(f) {
//			fmt.Println(r.What, r.Tool, r.Decision, r.Rule)
//		}
//	}
//	for _, p := range trail.Check() {
//		fmt.Println(p)
//	}
package audit
