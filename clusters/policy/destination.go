package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// destination is a LOCATION[@ENDPOINT] pattern, or an actual destination in the same form. In a bucket or prefix, *
// matches any characters, including slashes.
type destination struct {
	scheme, bucket string
	// prefix is the prefix within the bucket. A pattern without a prefix matches destinations with any prefix and
	// without one.
	prefix    string
	hasPrefix bool
	// endpoint is compared literally. If it is empty, the endpoint is the public endpoint of AWS (in its public
	// partition) or Google.
	endpoint string
}

func destinationOf(location, endpoint string) destination {
	scheme, rest, _ := strings.Cut(location, "://")
	bucket, prefix, has := strings.Cut(rest, "/")
	return destination{scheme, bucket, prefix, has, endpoint}
}

func destinationPattern(pattern string) destination {
	location, endpoint, _ := strings.Cut(pattern, "@")
	return destinationOf(location, endpoint)
}

// allows reports whether the pattern matches the requested destination. In the address of an etcd member, * matches
// only characters of a single label, so that a pattern does not allow other domains or networks.
func (d destination) allows(asked destination) bool {
	if d.scheme == etcdScheme {
		return asked.scheme == etcdScheme && matchesAddress(d.bucket, asked.bucket)
	}
	return d.scheme == asked.scheme && d.endpoint == asked.endpoint && matches(d.bucket, asked.bucket) &&
		(!d.hasPrefix || asked.hasPrefix && matches(d.prefix, asked.prefix))
}

// String returns the pattern.
func (d destination) String() string {
	text := d.scheme + "://" + d.bucket
	if d.hasPrefix {
		text += "/" + d.prefix
	}
	if d.endpoint != "" {
		text += "@" + d.endpoint
	}
	return text
}

// store describes the valid destinations of one kind of store.
type store struct {
	what string
	// bucket matches valid names, and longest is their maximum length. bucketPattern matches valid patterns, in which a
	// * may match the empty string.
	bucket, bucketPattern *regexp.Regexp
	longest               int
	// star describes the characters that * matches, if they are not all characters.
	star string
	// prefixes and endpoints specify whether the store supports them. ownEndpoint specifies that every destination has
	// its own endpoint.
	prefixes, endpoints, ownEndpoint bool
}

// These are the schemes of sources that can only be copied: running etcd clusters, and the volumes of stopped ones.
const (
	etcdScheme  = "etcd"
	claimScheme = "claim"
)

var stores = map[string]store{
	"s3": {
		what: "a bucket", bucket: regexp.MustCompile(`^[a-z0-9][a-z0-9.-]+[a-z0-9]$`),
		bucketPattern: regexp.MustCompile(`^[a-z0-9*]([a-z0-9.*-]*[a-z0-9*])?$`), longest: 63, prefixes: true,
		endpoints: true,
	},
	"gs": {
		what: "a bucket", bucket: regexp.MustCompile(`^[a-z0-9][a-z0-9._-]+[a-z0-9]$`),
		bucketPattern: regexp.MustCompile(`^[a-z0-9*]([a-z0-9._*-]*[a-z0-9*])?$`), longest: 222, prefixes: true,
		endpoints: true,
	},
	"azblob": {
		what: "a container", bucket: regexp.MustCompile(`^[a-z0-9][a-z0-9-]+[a-z0-9]$`),
		bucketPattern: regexp.MustCompile(`^[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?$`), longest: 63, prefixes: true,
		endpoints: true, ownEndpoint: true,
	},
	"volume": {
		what: "a PersistentVolumeClaim", bucket: claimName, bucketPattern: claimPattern, longest: 253,
	},
	claimScheme: {
		what: "a PersistentVolumeClaim", bucket: claimName, bucketPattern: claimPattern, longest: 253,
	},
	etcdScheme: {
		what:          "an etcd endpoint (HOST:PORT)",
		bucket:        regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]):[0-9]{1,5}$`),
		bucketPattern: regexp.MustCompile(`^([a-z0-9*]([a-z0-9.*-]*[a-z0-9*])?|\[[0-9a-f:.*]+\]):([0-9]{1,5}|\*)$`),
		longest:       259, star: "letters, digits and dashes",
	},
}

const longestPrefix = 256

var (
	claimName    = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	claimPattern = regexp.MustCompile(`^[a-z0-9*]([a-z0-9.*-]*[a-z0-9*])?$`)

	prefixElement = regexp.MustCompile(`^[A-Za-z0-9_*-][A-Za-z0-9._*-]*$`)
	endpointURL   = regexp.MustCompile(
		`^https?://[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[-A-Za-z0-9._/]*)?$`)
)

// errEverything is returned for patterns that contain Everything.
var errEverything = errors.New(Everything + " allows everything, and must be the whole pattern; * matches any " +
	"characters")

// checkAddress refuses patterns that no HOST:PORT can match.
func checkAddress(pattern string) error {
	if strings.Contains(pattern, Everything) {
		return errEverything
	}
	return stores[etcdScheme].checkBucket(pattern)
}

// checkDestination refuses patterns that no destination can match.
func checkDestination(pattern string) error {
	d := destinationPattern(pattern)
	s, known := stores[d.scheme]
	if !known {
		return fmt.Errorf("expected LOCATION or LOCATION@ENDPOINT, where LOCATION begins with "+
			"%s, such as s3://backups/etcd",
			strings.Join(slices.Sorted(maps.Keys(stores)), "://, ")+"://")
	}
	if strings.Contains(pattern, Everything) {
		return errEverything
	}
	if err := s.checkBucket(d.bucket); err != nil {
		return err
	}
	if err := s.checkPrefix(d); err != nil {
		return err
	}
	return s.checkEndpoint(pattern, d)
}

func (s store) checkBucket(bucket string) error {
	valid := s.bucket
	if strings.Contains(bucket, "*") {
		valid = s.bucketPattern
	}
	if !valid.MatchString(bucket) || len(strings.ReplaceAll(bucket, "*", "")) > s.longest {
		return fmt.Errorf("%q is not a valid name for %s; * matches any %s", bucket, s.what,
			cmp.Or(s.star, "characters of a name"))
	}
	return nil
}

func (s store) checkPrefix(d destination) error {
	invalid := func(element string) bool { return !prefixElement.MatchString(element) }
	switch {
	case !d.hasPrefix:
		return nil
	case !s.prefixes:
		return fmt.Errorf("%s does not have a prefix: expected %s://%s", s.what, d.scheme, d.bucket)
	case slices.ContainsFunc(strings.Split(d.prefix, "/"), invalid),
		len(strings.ReplaceAll(d.prefix, "*", "")) > longestPrefix:
		return fmt.Errorf("%q is not a valid prefix: expected names made up of letters, digits, '.', '_' and '-', "+
			"separated by '/'; * matches any of these; without a prefix, all prefixes are allowed", d.prefix)
	}
	return nil
}

func (s store) checkEndpoint(pattern string, d destination) error {
	switch has := strings.Contains(pattern, "@"); {
	case s.ownEndpoint && !has:
		return fmt.Errorf("specify the endpoint of the storage account: "+
			"%s@https://ACCOUNT.blob.core.windows.net", pattern)
	case has && !s.endpoints:
		return fmt.Errorf("%s does not have an endpoint: remove @%s", s.what, d.endpoint)
	case has && !endpointURL.MatchString(d.endpoint):
		return fmt.Errorf("%q is not an endpoint: expected a URL without "+
			"*, such as https://s3.example.com; without @, only "+
			"the public endpoint is allowed", d.endpoint)
	}
	return nil
}

// endpointOf returns the endpoint of a destination. For S3, it takes the region into account, which may be outside of
// AWS's public partition.
func endpointOf(declared v1alpha1.BackupDestination) string {
	if declared.S3 == nil || declared.S3.Endpoint != "" {
		return declared.Endpoint()
	}
	if _, domain := declared.S3.Partition(); domain != "" {
		return "https://s3." + declared.S3.Region + "." + domain
	}
	return ""
}

// destinations refuses backups to, and restores from, destinations that are not allowed.
func (r *refusals) destinations(p Policy, spec v1alpha1.EtcdClusterSpec) {
	eachDestination(spec, func(path string, to v1alpha1.BackupDestination) {
		r.destination(p.BackupDestinations, path, to)
	})
}

// etcdEndpoints refuses etcd endpoints that are not allowed, because a pod in Kubernetes would connect to them.
func (r *refusals) etcdEndpoints(p Policy, spec v1alpha1.EtcdClusterSpec) {
	if spec.Restore == nil || spec.Restore.From.Etcd == nil {
		return
	}
	for i, url := range spec.Restore.From.Etcd.Endpoints {
		asked := destinationOf(etcdScheme+"://"+url.Address(), "")
		if !p.BackupDestinations.allowsDestination(asked) {
			r.add(fmt.Sprintf("spec.restore.from.etcd.endpoints[%d]", i), "%s is not allowed; %s%s",
				quoted(string(url)), p.BackupDestinations.describe(BackupDestinations), asked.hint())
		}
	}
}

// adoptedEndpoints refuses to adopt clusters at endpoints that are not allowed, because an adoption changes the
// cluster's member list.
func (r *refusals) adoptedEndpoints(p Policy, spec v1alpha1.EtcdClusterSpec) {
	if spec.Adopt == nil {
		return
	}
	for i, url := range spec.Adopt.Endpoints {
		address, hint := url.Address(), ""
		matching := func(pattern string) bool { return matchesAddress(pattern, address) }
		if p.Adoptions.Limited && p.Adoptions.allows(matching) {
			continue
		}
		if checkAddress(address) == nil {
			hint = "; it would be allowed by " + address
		}
		r.add(fmt.Sprintf("spec.adopt.endpoints[%d]", i), "%s is not allowed; %s%s", quoted(string(url)),
			p.Adoptions.describe(Adoptions), hint)
	}
}

// claims refuses the volumes of stopped etcd clusters that are not allowed, because they may be another team's.
func (r *refusals) claims(p Policy, spec v1alpha1.EtcdClusterSpec) {
	if spec.Restore == nil || spec.Restore.From.Claims == nil {
		return
	}
	for i, name := range spec.Restore.From.Claims.Names {
		asked := destinationOf(claimScheme+"://"+string(name), "")
		if !p.BackupDestinations.allowsDestination(asked) {
			r.add(fmt.Sprintf("spec.restore.from.claims.names[%d]", i), "%s is not allowed; %s%s",
				quoted(string(name)), p.BackupDestinations.describe(BackupDestinations), asked.hint())
		}
	}
}

// eachDestination calls check for each backup destination, with its path.
func eachDestination(spec v1alpha1.EtcdClusterSpec, check func(path string, to v1alpha1.BackupDestination)) {
	if b := spec.Backup; b != nil {
		check("spec.backup.to", b.To)
	}
	if restore := spec.Restore; restore != nil && !restore.From.Copies() {
		check("spec.restore.from", restore.From.BackupDestination)
	}
	if recovery := spec.Recovery; recovery != nil && recovery.Backup != nil {
		check("spec.recovery.backup.from", recovery.Backup.From)
	}
}

// destination refuses to send a cluster's data to, or read it from, a destination that is not allowed.
func (r *refusals) destination(a Allowed, path string, declared v1alpha1.BackupDestination) {
	asked := destinationOf(declared.Location(), endpointOf(declared))
	if a.allowsDestination(asked) {
		return
	}
	what, hint := quoted(declared.Location()), ""
	if asked.endpoint != "" {
		what += " at " + quoted(asked.endpoint)
		hint = asked.hint()
	}
	r.add(path, "%s is not allowed; %s%s", what, a.describe(BackupDestinations), hint)
}

// allowsDestination reports whether a destination is allowed. Unlike all other kinds of requests, destinations are
// never allowed without a setting.
func (a Allowed) allowsDestination(asked destination) bool {
	return a.Limited && a.allows(func(pattern string) bool { return destinationPattern(pattern).allows(asked) })
}

// hint returns a message suffix with the pattern that would allow the destination, or "" if that pattern is not valid.
func (d destination) hint() string {
	if checkDestination(d.String()) != nil {
		return ""
	}
	return "; it would be allowed by " + d.String()
}
