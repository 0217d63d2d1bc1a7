package main

import "errors"

// filledText is a flag value that must not be empty, so that an unset variable does not silently disable the flag.
type filledText string

func (t *filledText) String() string { return string(*t) }
func (t *filledText) Type() string   { return "string" }

func (t *filledText) Set(text string) error {
	if text == "" {
		return errors.New("expected a value: an empty value would have no effect")
	}
	*t = filledText(text)
	return nil
}
