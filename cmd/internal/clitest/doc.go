// Package clitest is a collector of the spans that the programs of this module export, for tests of their commands. The
// programs are run by bus/bustest/harness.
package clitest
