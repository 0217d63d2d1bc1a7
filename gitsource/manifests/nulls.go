package manifests

// withoutNulls removes null fields in place. In server-side apply, a null field has a different meaning than a missing
// field.
func withoutNulls(value map[string]any) map[string]any {
	for key, v := range value {
		switch v := v.(type) {
		case nil:
			delete(value, key)
		case map[string]any:
			withoutNulls(v)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					withoutNulls(m)
				}
			}
		}
	}
	return value
}
