package recovery

import (
	"context"

	"quorate.dev/quorate/clusters/backup/snapshot"
)

// Files reads members' files and modifies files in copies, as package snapshot does. Implementations should read
// untrusted files in a child process, because such files can be crafted to exhaust memory or to crash the reader.
type Files interface {
	// Survivor calls snapshot.SurvivorOf.
	Survivor(ctx context.Context, dataDir string) (snapshot.Survivor, error)
	// CommitLog calls snapshot.CommitLog.
	CommitLog(ctx context.Context, dataDir string) (turnsAuthOn bool, err error)
	// DisableAuth calls snapshot.DisableAuth.
	DisableAuth(ctx context.Context, dataDir string) error
}

// TrustedFiles reads files in this process.
type TrustedFiles struct{}

// Survivor implements Files.
func (TrustedFiles) Survivor(_ context.Context, dataDir string) (snapshot.Survivor, error) {
	return snapshot.SurvivorOf(dataDir)
}

// CommitLog implements Files.
func (TrustedFiles) CommitLog(_ context.Context, dataDir string) (turnsAuthOn bool, err error) {
	return snapshot.CommitLog(dataDir)
}

// DisableAuth implements Files.
func (TrustedFiles) DisableAuth(_ context.Context, dataDir string) error {
	return snapshot.DisableAuth(dataDir)
}
