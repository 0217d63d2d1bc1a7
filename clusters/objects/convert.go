package objects

import (
	"encoding/json"
	"fmt"
)

// convert turns a value into one of another type with the same JSON, such as v1alpha1.Affinity into the apply
// configuration of core/v1 Affinity. A zero value with omitted fields converts to one with nil fields.
func convert[To any](from any) (To, error) {
	var to To
	text, err := json.Marshal(from)
	if err != nil {
		return to, fmt.Errorf("encode %T: %w", from, err)
	}
	if err := json.Unmarshal(text, &to); err != nil {
		return to, fmt.Errorf("decode %T as %T: %w", from, to, err)
	}
	return to, nil
}
