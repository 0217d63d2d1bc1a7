// Package gitsource reads what git declares: it asks a server for its references (remote), picks a revision by its name (refs), and, if that is not
// the one read before, fetches it (remote, pack) or finds it kept (cache), checks who signed it (signature), shows its files without a worktree
// (gittree), and decodes the EtcdClusters in them (manifests). It also tells whether a revision descends from another (history).
//
// What is wrong with the content is data. An error means that the source could not be read; then nothing at all is known of what is declared.
package gitsource
