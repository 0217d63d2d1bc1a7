package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// namespaces is a setting that may be repeated, and may name several with semicolons between them.
type namespaces []string

// flag sets n again when it is set for the first time, and adds to it from then on.
func (n *namespaces) flag() *namespacesFlag { return &namespacesFlag{list: n} }

type namespacesFlag struct {
	list  *namespaces
	given bool
}

// String implements pflag.Value.
func (f *namespacesFlag) String() string { return strings.Join(*f.list, ";") }

// Type implements pflag.Value.
func (f *namespacesFlag) Type() string { return "strings" }

// Set implements pflag.Value.
func (f *namespacesFlag) Set(value string) error {
	names := strings.Split(value, ";")
	hint := ""
	if strings.ContainsAny(value, ", ") {
		hint = "; several namespaces have ; between them"
	}
	for _, name := range names {
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			return fmt.Errorf("%q is no name of a namespace: %s%s", name, errs[0], hint)
		}
	}
	if f.given {
		names = append(slices.Clone(*f.list), names...)
	}
	*f.list, f.given = names, true
	return nil
}
