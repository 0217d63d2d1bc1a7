// Package scenarios tests the quorate binary end to end, from the outside: declarations are pushed
// into real git repositories, the binary runs against a real Kubernetes node in the sandbox, and
// what came of it is asked of Kubernetes and of etcd itself.
//
//	go test ./scenarios                       everything (starts the sandbox "test", or uses it if it is up)
//	go test ./scenarios -run TestFounding     one scenario
//	go test ./scenarios -run '^$' -bench .    figures
//	go test ./scenarios -short                only what needs no sandbox
//
// The binaries bin/quorate, bin/sandbox, bin/s3 and bin/prometheus of the checkout, or of the directory
// QUORATE_BIN, are used as they are. QUORATE_SANDBOX names another sandbox than "test"; QUORATE_KEEP_SANDBOX=1
// leaves it up at the end, and the namespaces of tests that failed in it. Linux and root are
// needed.
package scenarios
