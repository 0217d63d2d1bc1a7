// Package gitsource reads the declarations in a source. It asks a server for its references (remote) and selects a
// revision by name (refs). If the revision has changed since the last read, it fetches the objects (remote, pack) or
// loads them from the cache (cache), verifies the signature (signature), presents the files without a worktree
// (gittree), and decodes the EtcdClusters in them (manifests). It also determines whether one revision descends from
// another (history).
//
// All of this except decoding runs in a child process, the fetcher (child.go), which receives only the options for
// its source. Decoding runs in another process, which asks for files. The main process sits between the two and checks
// everything that they report (child_fetch.go, child_checks.go).
//
// Problems with the content are returned as data. An error means that the source could not be read; its declarations
// are then unknown.
package gitsource
