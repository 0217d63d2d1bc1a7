// Package gitsource reads what git declares: it asks a server for its references (remote), picks a
// revision by its name (refs), and, if that is not the one read before, fetches it (remote, pack)
// or finds it kept (cache), checks who signed it (signature), shows its files without a worktree
// (gittree), and decodes the EtcdClusters in them (manifests). It also tells whether a revision
// descends from another (history).
//
// All of that but decoding is done in a process of its own (child.go), which has the options for
// that source and nothing else of this one. Decoding is done in another, which asks for files; this
// process is between them, and believes neither more than a source may say (apart.go, believe.go).
//
// What is wrong with the content is data. An error means that the source could not be read; then
// nothing at all is known of what is declared.
package gitsource
