package manifests

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// checkNames rejects clusters that are declared twice, and clusters with the name of an object of another cluster in
// the same namespace. Declarations with other problems are included in the check.
func checkNames(declarations []*declaration) {
	declared := map[types.NamespacedName][]*declaration{}
	for _, d := range declarations {
		if d.name.Name != "" {
			declared[d.name] = append(declared[d.name], d)
		}
	}
	for name, same := range declared {
		checkTwice(same)
		for _, owner := range ownersOf(name) {
			for _, d := range same {
				if others := declared[owner]; len(others) > 0 {
					d.problem("metadata.name",
						"metadata.name: %s is the name of an object of the cluster %s (%s), declared in %s; "+
							"choose a different name", name.Name, owner.Name, owner.Namespace, others[0].place())
				}
			}
		}
	}
}

// checkTwice rejects all declarations of a cluster that is declared more than once, because the intended declaration is
// unknown.
func checkTwice(same []*declaration) {
	if len(same) < 2 {
		return
	}
	slices.SortFunc(same, func(a, b *declaration) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	for i, d := range same {
		other := same[0]
		if i == 0 {
			other = same[1]
		}
		d.problem("metadata.name", "the cluster %s is declared twice: also in %s", d.name, other.place())
	}
}

func (d *declaration) place() string {
	if line := d.lineOf("metadata.name"); line > 0 {
		return fmt.Sprintf("%s:%d", d.file, line)
	}
	return d.file
}

// derivedName matches names that an object of a cluster may have: Services, the ConfigMap, Secrets, CronJobs, the Jobs
// that restore and recover the cluster, pods and volume claims. The kind is ignored, because names that differ only by
// kind confuse users and DNS.
var derivedName = regexp.MustCompile(
	`^(.+)-(?:client|members|ca|peer-tls|server-tls|client-tls|quorate-tls|backup|drill|restore|recovery|[0-9]+)$`)

var claimName = regexp.MustCompile(`^data-(.+)-[0-9]+$`)

// ownersOf returns the clusters that would have an object with that name.
func ownersOf(name types.NamespacedName) []types.NamespacedName {
	var owners []types.NamespacedName
	for _, form := range []*regexp.Regexp{derivedName, claimName} {
		if m := form.FindStringSubmatch(name.Name); m != nil {
			owners = append(owners, types.NamespacedName{Namespace: name.Namespace, Name: m[1]})
		}
	}
	return owners
}
