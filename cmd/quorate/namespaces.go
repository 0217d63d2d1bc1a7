package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// namespacesFlag is a repeatable flag whose values may contain several names, separated by semicolons. The first value
// replaces the list, and later values are appended to it.
type namespacesFlag struct {
	list  *[]string
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
		hint = "; separate several namespaces with ;"
	}
	for _, name := range names {
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			return fmt.Errorf("%q is not a namespace name: %s%s", name, errs[0], hint)
		}
	}
	if f.given {
		names = append(slices.Clone(*f.list), names...)
	}
	*f.list, f.given = names, true
	return nil
}
