package recovery

import (
	"context"

	"quorate.dev/quorate/clusters/backup/snapshot"
)

// Files reads the files of members, and changes those of copies, as package snapshot does. Whoever does not trust
// them has it done in a process of its own: files can be made such that reading them takes all memory, or ends
// the process.
type Files interface {
	// Survivor is snapshot.SurvivorOf.
	Survivor(ctx context.Context, dataDir string) (snapshot.Survivor, error)
	// CommitLog is snapshot.CommitLog.
	CommitLog(ctx context.Context, dataDir string) (turnsAuthOn bool, err error)
	// DisableAuth is snapshot.DisableAuth.
	DisableAuth(ctx context.Context, dataDir string) error
}

// TrustedFiles are read in this process.
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
