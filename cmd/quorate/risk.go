package main

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/forecast"
)

// riskFlag lists the risks that make a command fail.
type riskFlag []forecast.Risk

// avoidable returns the risks that the flag accepts. An unknown risk could be any of them.
func avoidable() []forecast.Risk {
	return slices.DeleteFunc(forecast.Risks(),
		func(risk forecast.Risk) bool { return risk == forecast.Safe || risk == forecast.Unknown })
}

func namesOfRisks() string { return joined(avoidable(), ", ") }

func joined(risks []forecast.Risk, separator string) string {
	var names []string
	for _, risk := range risks {
		names = append(names, string(risk))
	}
	return strings.Join(names, separator)
}

// Set adds risks, separated by commas.
func (f *riskFlag) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		risk := forecast.Risk(strings.TrimSpace(name))
		if !slices.Contains(avoidable(), risk) {
			return fmt.Errorf("%q is not one of %s", name, namesOfRisks())
		}
		*f = append(*f, risk)
	}
	return nil
}

// String returns the risks, separated by commas.
func (f *riskFlag) String() string { return joined(*f, ",") }

// Type implements pflag.Value.
func (f *riskFlag) Type() string { return "risk" }

// isAmong reports whether any chosen risk is, or may be, among the given risks.
func (f *riskFlag) isAmong(risks []forecast.Risk) bool {
	if len(*f) > 0 && slices.Contains(risks, forecast.Unknown) {
		return true
	}
	return slices.ContainsFunc(*f, func(risk forecast.Risk) bool { return slices.Contains(risks, risk) })
}
