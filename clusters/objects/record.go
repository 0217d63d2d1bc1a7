package objects

import (
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/internal/yamlguard"
	"quorate.dev/quorate/reconcile/decide"
)

// RecordKey is the key of the record in the data of the ConfigMap.
const RecordKey = "record.yaml"

// EncodeRecord returns the record as stored in the ConfigMap.
func EncodeRecord(r decide.Record) (string, error) {
	text, err := yaml.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode the record: %w", err)
	}
	return string(text), nil
}

// DecodeRecord decodes the output of EncodeRecord. For unknown content, it returns an error instead of an empty record,
// because a cluster with an empty record would bootstrap again. The error text can follow the words "cannot be read".
func DecodeRecord(text string) (decide.Record, error) {
	if err := checkText(text); err != nil {
		return decide.Record{}, err
	}
	var r decide.Record
	if err := yaml.UnmarshalStrict([]byte(text), &r); err != nil {
		if unknown := unknownField.FindStringSubmatch(err.Error()); unknown != nil {
			return decide.Record{}, fmt.Errorf("it contains %s, which this version of Quorate does not know: run the "+
				"version that wrote it", unknown[1])
		}
		return decide.Record{}, err
	}
	if err := checkRecord(r); err != nil {
		return decide.Record{}, err
	}
	return r, nil
}

// longestText is the maximum length, in bytes, of a text read from the ConfigMap. Quorate writes far shorter texts.
const longestText = 64 << 10

// checkText rejects texts that could take far more memory than any text written by Quorate.
func checkText(text string) error {
	if len(text) > longestText {
		return fmt.Errorf("it is longer than %d KiB", longestText>>10)
	}
	return yamlguard.Refuse(text)
}

// unknownField matches encoding/json's error for an unknown field.
var unknownField = regexp.MustCompile(`unknown field (".*")$`)

func checkRecord(r decide.Record) error {
	if r.Token == "" {
		return fmt.Errorf("it has no token")
	}
	if r.CA != "" && !fingerprint.MatchString(r.CA) {
		return fmt.Errorf("its CA %q is not a SHA-256 fingerprint", r.CA)
	}
	last := -1
	for _, m := range r.Members {
		switch {
		case m.Ordinal <= last || m.Ordinal > MaxOrdinal:
			return fmt.Errorf("ordinal %d is out of order or out of bounds", m.Ordinal)
		case m.Mode != decide.Founding && m.Mode != decide.Joining && m.Mode != decide.Sealed &&
			m.Mode != decide.Restoring:
			return fmt.Errorf("member %d has the unknown mode %q", m.Ordinal, m.Mode)
		}
		last = m.Ordinal
	}
	if err := checkGuests(r); err != nil {
		return err
	}
	if r.Restoring() && (r.ClusterID != 0 || len(r.Members) != 1 || r.Members[0].Ordinal != decide.SeedOrdinal) {
		return fmt.Errorf("it describes a restore into a cluster that has already formed")
	}
	if begun := r.Recovery; begun != (decide.RecordedRecovery{}) &&
		(begun.ClusterID == 0 || begun.VolumeUID == "" || begun.Ordinal < 0 || begun.Ordinal > MaxOrdinal) {
		return fmt.Errorf("its description of the started recovery is incomplete")
	}
	last = -1
	for _, gone := range r.Removed {
		if gone.Ordinal <= last || gone.Ordinal > MaxOrdinal {
			return fmt.Errorf("removed ordinal %d is out of order or out of bounds", gone.Ordinal)
		}
		last = gone.Ordinal
	}
	return nil
}

func checkGuests(r decide.Record) error {
	for i, guest := range r.Guests {
		switch {
		case r.Adopted == 0 || r.Adopted != r.ClusterID:
			return fmt.Errorf("it lists guests, but it is not the record of the adopted cluster")
		case r.MayFound() || r.Restoring():
			return fmt.Errorf("it lists guests, but it lets members bootstrap a cluster")
		case len(r.Guests) > maxGuests:
			return fmt.Errorf("it lists %d guests, more than the limit of %d", len(r.Guests), maxGuests)
		case slices.ContainsFunc(r.Members, func(m decide.RecordedMember) bool { return m.ID == guest }):
			return fmt.Errorf("guest %s is also a replica", guest)
		case guest == 0 || i > 0 && guest <= r.Guests[i-1]:
			return fmt.Errorf("guest %s is out of order or has no ID", guest)
		}
	}
	return nil
}

// fingerprint matches the result of pki.Fingerprint.
var fingerprint = regexp.MustCompile(`^([0-9A-F]{2}:){31}[0-9A-F]{2}$`)

// maxGuests is the maximum number of recorded guests. An adopted cluster has far fewer members.
const maxGuests = 32

// MaxOrdinal is the highest ordinal that decide.Ordinals can contain.
const MaxOrdinal = decide.MaxOrdinals - 1
