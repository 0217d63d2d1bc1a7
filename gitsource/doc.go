// Package gitsource reads what git declares: it fetches one revision (remote), picks it by its name (refs), checks who signed it (signature), shows its
// files without a worktree (gittree), and decodes the EtcdClusters in them (manifests).
//
// What is wrong with the content is data. An error means that the source could not be read; then nothing at all is known of what is declared.
package gitsource
