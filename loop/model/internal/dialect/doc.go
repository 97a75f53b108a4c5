// Package dialect holds what the clients of the model providers share: putting streamed calls together, writing a
// history that every provider accepts, names and ids within a provider's limits, and the classes of failure.
//
// It owns what is the same for all dialects and needs no SDK. It refuses to own the form of a request or an answer,
// which is each client's.
//
//	var calls dialect.Assembler
//	calls.Chunk(dialect.Piece{Index: &zero, ID: "call_1", Name: "read_file"})
//	calls.Chunk(dialect.Piece{Index: &zero, Args: dialect.Str(`{"path":`)}, dialect.Piece{Index: &zero, Args: dialect.Str(`"go.mod"}`)})
//	raw, err := calls.Calls()
package dialect
