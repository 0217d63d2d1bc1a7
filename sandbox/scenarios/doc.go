// Package scenarios tests the quorate binary end to end. Tests push declarations to real git repositories, run the
// binary against a real Kubernetes node in the sandbox, and read the results from Kubernetes and from etcd itself.
//
//	go test ./scenarios                       everything (starts the sandbox "test", or uses it if it is up)
//	go test ./scenarios -run TestFounding     one scenario
//	go test ./scenarios -run '^$' -bench .    figures
//	go test ./scenarios -short                only tests without a sandbox
//
// The tests use the binaries quorate, sandbox, s3 and prometheus in the checkout's bin directory, or in the directory
// QUORATE_BIN. These must already exist. QUORATE_SANDBOX selects a sandbox other than "test". If
// QUORATE_KEEP_SANDBOX=1, the sandbox keeps running at the end, with the namespaces of failed tests. The tests require
// Linux and root.
package scenarios
