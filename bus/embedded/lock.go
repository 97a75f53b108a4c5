package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// lockName is the file beside JetStream's own that is locked while a server uses them.
const lockName = "jetcrew.lock"

// lock makes dir exist and takes it for one server: two that write the same files lose what each other wrote, and
// neither notices.
func lock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch mine, err := tryLock(f); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	case !mine:
		return nil, errors.Join(errors.New("another process uses it; others reach its server by NATS_URL, which `orchestrator serve --data DIR` prints"), f.Close())
	}
	return f, nil
}
