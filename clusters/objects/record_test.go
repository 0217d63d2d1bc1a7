package objects

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestRecordRoundTrip checks that encoding and decoding a record does not change it, even if its IDs look like numbers.
func TestRecordRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ca := certificates(t, threeMembers(t, "3.6.16")).Trusted()
	modes := []decide.Mode{decide.Founding, decide.Joining, decide.Sealed}
	for range 2000 {
		r := decide.Record{Token: fmt.Sprintf("%x", random.Uint64()), ClusterID: randomID(random)}
		if random.IntN(2) == 0 {
			r.CA = pki.Fingerprint(ca)
		}
		for ordinal := range random.IntN(10) {
			if random.IntN(4) > 0 {
				r.Members = append(r.Members, decide.RecordedMember{
					Ordinal: ordinal, Mode: modes[random.IntN(3)], ID: randomID(random), VolumeUID: fmt.Sprintf("%08d", random.IntN(1e8)),
				})
			}
		}
		for ordinal := range random.IntN(10) {
			if random.IntN(4) == 0 {
				r.Removed = append(r.Removed, decide.RemovedMember{Ordinal: ordinal, VolumeUID: fmt.Sprintf("%08d", random.IntN(1e8)),
					LostCluster: decide.ID(random.IntN(2))})
			}
		}
		if random.IntN(3) == 0 {
			r.Recovery = decide.RecordedRecovery{ClusterID: 1 + randomID(random)>>1, Ordinal: random.IntN(64), VolumeUID: "v"}
		}
		if random.IntN(3) == 0 && r.ClusterID != 0 && !r.MayFound() {
			r.Adopted, r.Guests = r.ClusterID, []decide.ID{0x13e4567, 0x1234567890123457}
		}
		text, err := EncodeRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeRecord(text); err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%v:\n%s\n%+v\n%+v", err, text, r, again)
		}
	}
}

// randomID returns a random ID that often has a different meaning in YAML, such as 12e4567, which is a number there.
func randomID(random *rand.Rand) decide.ID {
	return []decide.ID{0, 0x1234567890123456, 0x12e4567, 0x0e1, 0x7, decide.ID(random.Uint64())}[random.IntN(6)]
}

// TestYAMLAliasesAreRejected checks that YAML aliases are rejected, because they allow a hundred kilobytes of text to
// represent gigabytes. Characters that only look like the start of an alias are accepted.
func TestYAMLAliasesAreRejected(t *testing.T) {
	const kilobytes = 60
	long := "data-dir: &a " + strings.Repeat("x", kilobytes<<9) + "\nlog-outputs: [" + strings.Repeat("*a,", kilobytes<<7) + "*a]\n"
	if file := readFile(long); file != nil {
		t.Errorf("%d keys", len(file))
	}
	if file := readFile("name: a*b\ndata-dir: '*a'\n"); file["name"] != "a*b" || file["data-dir"] != "*a" {
		t.Errorf("%v", file)
	}
	if r, err := DecodeRecord("token: a*b"); err != nil || r.Token != "a*b" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestInvalidRecordsAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "it has no token",
		"{":                      "yaml",
		"[]":                     "cannot unmarshal",
		"token: x\nca: ab:cd":    `CA "ab:cd" is not a SHA-256 fingerprint`,
		"token: x\ncolour: red":  `it contains "colour", which this version of Quorate does not know`,
		"token: x\nauthority: A": `it contains "authority", which this version of Quorate does not know`,
		"token: x\nmembers: [{ordinal: 1, mood: Sealed}]":                                                `it contains "mood", which`,
		"token: x\nclusterID: z":                                                                         `parse ID "z"`,
		"token: x\nmembers: [{ordinal: 1, mode: Sealed}, {ordinal: 1, mode: Sealed}]":                    "ordinal 1 is out of order",
		"token: x\nmembers: [{ordinal: -1, mode: Sealed}]":                                               "ordinal -1 is out of order or out of bounds",
		"token: x\nmembers: [{ordinal: 64, mode: Sealed}]":                                               "out of bounds",
		"token: x\nmembers: [{ordinal: 0, mode: Frozen}]":                                                `unknown mode "Frozen"`,
		"token: x\ntoken: y":                                                                             "already set",
		"token: x\nremoved: [{ordinal: 2}, {ordinal: 1}]":                                                "removed ordinal 1 is out of order",
		"token: x\nremoved: [{ordinal: 1}, {ordinal: 1}]":                                                "removed ordinal 1 is out of order",
		"token: x\nremoved: [{ordinal: 64}]":                                                             "removed ordinal 64 is out of order or out of bounds",
		"token: x\nremoved: [{ordinal: -1}]":                                                             "removed ordinal -1 is out of order or out of bounds",
		"token: x\nrecovery: {clusterID: c1, ordinal: 1}":                                                "its description of the started recovery is incomplete",
		"token: x\nrecovery: {ordinal: 64, clusterID: c1, volumeUID: v}":                                 "its description of the started recovery is incomplete",
		"token: x\nremoved: [{ordinal: 1, mode: Sealed}]":                                                `it contains "mode", which`,
		`{token: x, clusterID: c1, guests: ["1"]}`:                                                       "it is not the record of the adopted cluster",
		`{token: x, clusterID: c1, adopted: c2, guests: ["1"]}`:                                          "it is not the record of the adopted cluster",
		`{token: x, clusterID: c1, adopted: c1, guests: ["2", "1"]}`:                                     "guest 1 is out of order",
		`{token: x, clusterID: c1, adopted: c1, guests: ["1", "1"]}`:                                     "guest 1 is out of order",
		`{token: x, clusterID: c1, adopted: c1, guests: ["0"]}`:                                          "guest 0 is out of order or has no ID",
		`{token: x, clusterID: c1, adopted: c1, guests: [` + strings.Repeat(`"1",`, 32) + `"1"]}`:        "it lists 33 guests, more than the limit of 32",
		`{token: x, clusterID: c1, adopted: c1, guests: ["1"], members: [{ordinal: 0, mode: Founding}]}`: "it lets members bootstrap",
		"token: &a x\nca: *a":                                                                            "it contains a YAML alias",
		"token: " + strings.Repeat("x", 64<<10):                                                          "it is longer than 64 KiB",
	} {
		r, err := DecodeRecord(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

// TestAdoptedRecord checks that the record of an adopted cluster without members builds objects without pods, and that
// neither it nor the record of a joined replica can bootstrap a cluster.
func TestAdoptedRecord(t *testing.T) {
	c := threeMembers(t, "3.6.16")
	c.Spec.TLS.Mode = v1alpha1.TLSDisabled
	in := Input{Cluster: c, Record: decide.Record{Token: "t", ClusterID: 0xc1, Adopted: 0xc1, Guests: []decide.ID{1, 2}}, Guests: 2, Voters: 1}
	list, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	set := list[len(list)-1].Apply.(*applyappsv1.StatefulSetApplyConfiguration)
	if *set.Spec.Replicas != 0 || len(filesOf(t, in)) != 1 || FoundingID(c, in.Record) != 0 {
		t.Errorf("%d replicas, files %v", *set.Spec.Replicas, filesOf(t, in))
	}
	in.Record.Members = []decide.RecordedMember{{Mode: decide.Joining}}
	for _, in.Peers = range []map[string][]string{nil, {"guest-1": {"http://x:2380"}}} {
		if file := fileOf(t, in, 0); !strings.Contains(file, "sealed.invalid") || !strings.Contains(file, "initial-cluster-state: existing") {
			t.Errorf("with peers %v: %s", in.Peers, file)
		}
	}
}
