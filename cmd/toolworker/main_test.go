package main

import (
	"testing"

	"github.com/jetcrew/jetcrew/cmd/internal/clitest"
)

// program is the path of the program under test.
var program string

func TestMain(m *testing.M) { clitest.Main(m, &program) }
