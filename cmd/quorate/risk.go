package main

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/road"
)

// riskFlag lists the risks that make the command fail.
type riskFlag []road.Risk

// avoidable returns the risks that can be chosen. An unknown risk may be any of them.
func avoidable() []road.Risk {
	return slices.DeleteFunc(road.Risks(),
		func(risk road.Risk) bool { return risk == road.Safe || risk == road.Unknown })
}

func namesOfRisks() string { return joined(avoidable(), ", ") }

func joined(risks []road.Risk, separator string) string {
	var names []string
	for _, risk := range risks {
		names = append(names, string(risk))
	}
	return strings.Join(names, separator)
}

// Set adds risks, separated by commas.
func (f *riskFlag) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		risk := road.Risk(strings.TrimSpace(name))
		if !slices.Contains(avoidable(), risk) {
			return fmt.Errorf("%q is none of %s", name, namesOfRisks())
		}
		*f = append(*f, risk)
	}
	return nil
}

// String returns the risks, separated by commas.
func (f *riskFlag) String() string { return joined(*f, ",") }

// Type implements pflag.Value.
func (f *riskFlag) Type() string { return "risk" }

// isAmong reports whether a chosen risk is, or may be, among those of a report.
func (f *riskFlag) isAmong(risks []road.Risk) bool {
	if len(*f) > 0 && slices.Contains(risks, road.Unknown) {
		return true
	}
	return slices.ContainsFunc(*f, func(risk road.Risk) bool { return slices.Contains(risks, risk) })
}
