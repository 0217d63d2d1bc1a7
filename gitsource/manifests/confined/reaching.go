package confined

// Reach is what a process can still do besides computing: it starts no program, sends no signal to
// another process and reads nobody's memory.
type Reach struct {
	// Read are files, and directories with all that is below them, to read. Write are directories
	// to make, change and remove files in as well. What is not there is left out. Where the kernel
	// has no Landlock, every file of the user can be read and written.
	Read, Write []string
	// Network is whether it may connect to others. Nobody ever connects to it.
	Network bool
}
