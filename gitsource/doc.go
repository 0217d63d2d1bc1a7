// Package gitsource reads what git declares: it fetches one revision, renders it with
// kustomize where it asks for that, and decodes the EtcdClusters in it strictly.
//
// What is wrong with the content is data: all Problems of all files at once, and the
// clusters without problems beside them. An error means that the source could not be
// read; then nothing at all is known of what is declared.
//
// Git is trusted for intent, not for safety. A revision is read in memory: there is no
// worktree, no symbolic link and no submodule is followed, nothing is executed, and sizes
// are bounded (limits.go).
package gitsource
