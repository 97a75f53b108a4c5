package bus

// Lease is lease for tests.
var Lease = (*Bus).lease
