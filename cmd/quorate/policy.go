package main

import (
	"strings"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/clusters/policy"
)

// addPolicy adds the flags that limit what declarations may request.
func addPolicy(f *pflag.FlagSet, p *policy.Policy) {
	const rest = "; repeatable, or a list separated by semicolons (default: all, or none if --allow-namespace is set)"
	for _, setting := range []struct {
		kind  policy.Kind
		usage string
	}{
		{policy.Images, "pattern of image repositories that clusters may use, such as registry.example.com/team/*; " +
			"repeatable, or a list separated by semicolons " +
			"(default: all, or " + policy.DefaultImage + " if --allow-namespace is set)"},
		{policy.PriorityClasses, "pattern of priority classes that pods may have" + rest},
		{policy.Annotations, "pattern of annotations that pods may have in addition to " +
			"Quorate's own: KEY or KEY=VALUE" +
			rest},
		{policy.Labels, "pattern of labels that pods may have in addition to Quorate's own: KEY or KEY=VALUE" + rest},
		{policy.Tolerations, "pattern of taints that pods may tolerate: KEY[=VALUE][:EFFECT]" + rest},
		{policy.NodeSelectors, "pattern of labels that pods may use to select nodes: KEY or KEY=VALUE" + rest},
		{policy.NetworkPeers, "pattern of network peers that may reach the members, in addition to the source's own " +
			"namespaces: addresses such as 10.0.0.0/8, or a namespace label, KEY or KEY=VALUE" + rest},
		{policy.ServiceAccounts, "pattern of service accounts that backup pods may use; ** also allows the " +
			"credentials of the node, which pods use if neither secretName nor serviceAccountName is set" + rest},
		{policy.KMSKeys, "pattern of KMS keys that backups may be encrypted with (kmsKey)" + rest},
		{policy.LockTimes, "maximum time for which backups may be locked (lockFor), such as 720h " +
			"(default: any, or none if --allow-namespace is set)"},
		{policy.BackupsPerDay, "maximum number of backups, and of drills, that a schedule may start per day " +
			"(default: any, or " + policy.DefaultBackupsPerDay + " if --allow-namespace is set)"},
		{policy.BackupDestinations, "pattern of locations that backups may use and restores may read: LOCATION or " +
			"LOCATION@ENDPOINT, such as s3://backups/team-*; repeatable, or a list separated by semicolons " +
			"(default: none; validate checks locations only if it is set)"},
		{policy.Adoptions, "pattern of endpoints of running etcd clusters that may be adopted (spec.adopt): " +
			"HOST:PORT, such as etcd-*.etcd.prod.svc:2379; repeatable, or a list separated by semicolons " +
			"(default: none; validate checks endpoints only if it is set)"},
	} {
		f.Var(&allowedFlag{kind: setting.kind, allowed: p.Of(setting.kind)}, string(setting.kind), setting.usage)
	}
}

// allowedFlag holds the allowed patterns. The first value replaces them, and later values are appended.
type allowedFlag struct {
	kind    policy.Kind
	allowed *policy.Allowed
	given   bool
}

// String implements pflag.Value.
func (f *allowedFlag) String() string {
	if f.allowed == nil {
		return ""
	}
	return strings.Join(f.allowed.Patterns, ";")
}

// Type implements pflag.Value.
func (f *allowedFlag) Type() string { return "strings" }

// Set implements pflag.Value.
func (f *allowedFlag) Set(value string) error {
	before := policy.Allowed{}
	if f.given {
		before = *f.allowed
	}
	allowed, err := before.Setting(f.kind, value)
	if err != nil {
		return err
	}
	*f.allowed, f.given = allowed, true
	return nil
}
