// Package scenarios tests the quorate binary end to end: declarations are pushed to real git repositories, the
// binary runs against a real Kubernetes node in the sandbox, and the results are read from Kubernetes and from
// etcd itself.
//
//	go test ./scenarios                       everything (starts the sandbox "test", or uses it if it is up)
//	go test ./scenarios -run TestFounding     one scenario
//	go test ./scenarios -run '^$' -bench .    figures
//	go test ./scenarios -short                only tests without a sandbox
//
// The binaries bin/quorate, bin/sandbox, bin/s3 and bin/prometheus of the checkout, or of the directory
// QUORATE_BIN, are used as they are. QUORATE_SANDBOX names a sandbox other than "test". QUORATE_KEEP_SANDBOX=1
// keeps it running at the end, with the namespaces of failed tests. Linux and root are required.
package scenarios
