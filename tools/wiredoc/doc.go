// Wiredoc writes docs/wire.md, the wire contract, from the code: subjects, headers, stream settings and payloads are
// read from the packages bus and schema, their meaning from the comments in the source. Only the prose between the
// tables stands in wire.md.tmpl.
//
//	go run ./tools/wiredoc          # write docs/wire.md
//	go run ./tools/wiredoc -check   # exit 1 when it is not what the code says
package main
