package register

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain has the test binary act as another process where a test has started it as one.
func TestMain(m *testing.M) {
	if play := roles[os.Getenv(roleVariable)]; play != nil {
		play()
		return
	}
	goleak.VerifyTestMain(m)
}

// roleVariable is the environment variable that says which role to play.
const roleVariable = "PLUGPOLL_ROLE"
