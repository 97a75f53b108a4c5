// Package memory folds the facts of a run into what its agent remembers: the next prompt.
//
// It owns the order of messages: says where the model saw them, then each turn with exactly one tool message per
// call, in call order, whatever order the facts came in. It refuses to own decisions and I/O: the live loop and a
// resumed run put the same facts into the same fold.
//
//	m := memory.New()
//	for _, f := range facts { // in any order, repeated or not
//		if err := m.Apply(f); err != nil {
//			log.Print(err)
//		}
//	}
//	prompt := m.Messages()
package memory
