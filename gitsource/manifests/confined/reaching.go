package confined

// Reach specifies what a process can do in addition to computing. It can never start programs, signal other processes
// or read their memory.
type Reach struct {
	// Read lists files, and directories with everything below them, that may be read. Write lists directories in which
	// files may also be created, changed and removed. Missing paths are ignored. If the kernel does not support
	// Landlock, all files of the user can be read and written.
	Read, Write []string
	// Network allows outgoing connections. Incoming connections are never allowed.
	Network bool
}
