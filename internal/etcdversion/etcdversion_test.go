package etcdversion

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Version{
		"3.6.16":       {3, 6, 16, ""},
		"0.0.0":        {},
		"3.6.0-rc.1":   {3, 6, 0, "-rc.1"},
		"3.7.0-beta.0": {3, 7, 0, "-beta.0"},
	} {
		got, err := Parse(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is read as %+v, which is %s: %v", text, got, got, err)
		}
	}
	for _, text := range []string{
		"", "3", "3.6", "3.6.16.1", "x.6.16", "3.x.16", "3.6.x", "-3.6.16", "3.6.-1", "v3.6.16", "+3.6.16", "3.06.16", " 3.6.16", "3.6.16 ", "3.6.16\n",
		"3.6.16+git", "3.6.0-", "3.6.0-rc_1", "3.6.99999999999999999999", "٣.6.16", "3.6.0x10",
	} {
		if got, err := Parse(text); err == nil || got != (Version{}) {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

// TestParseRunning checks that a vendor's build is parsed as the release on which it is based, and that etcd's own
// pre-releases keep their suffix.
func TestParseRunning(t *testing.T) {
	for text, want := range map[string]string{
		"3.6.16": "3.6.16", "3.6.16+acme.1": "3.6.16", "3.5.26-k3s1": "3.5.26", "3.5.26-k3s1+b": "3.5.26", "3.6.0-rc.1": "3.6.0-rc.1",
		"3.6.0-alpha.0+git": "3.6.0-alpha.0", "3.7.0-pre": "3.7.0-pre", "3.6.16-rcfoo": "3.6.16", "3.6.16-0": "3.6.16",
		"": "", "main": "", "v3.6.16": "", "3.6": "", "3.6.16+": "", "3.6.16 x": "", "3.6.99999999999999999999": "",
	} {
		got, err := ParseRunning(text)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q is read as %s: %v", text, got, err)
		}
	}
}

func TestCompare(t *testing.T) {
	ascending := []string{"0.9.0", "3.5.9", "3.5.26", "3.6.0-alpha.0", "3.6.0-rc.2", "3.6.0-rc.10", "3.6.0", "3.6.1", "3.10.0", "4.0.0"}
	var versions []Version
	for _, text := range ascending {
		versions = append(versions, Must(text))
	}
	for i, v := range versions {
		for j, o := range versions {
			if got := v.Compare(o); (got < 0) != (i < j) || (got > 0) != (i > j) || v.AtLeast(o) != (i >= j) {
				t.Errorf("%s to %s: %d", v, o, got)
			}
		}
	}
	slices.Reverse(versions)
	if slices.SortFunc(versions, Version.Compare); versions[0] != Must(ascending[0]) {
		t.Errorf("the oldest is %s", versions[0])
	}
}

func TestMajorMinor(t *testing.T) {
	for text, want := range map[string]string{"3.6": "3.6", "3.6.16": "3.6", "3.6.0-rc.1": "3.6", "3": "", "": "", "x": "", "3.6.x": "", "3.": "", "3.6.": ""} {
		got, err := ParseMajorMinor(text)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q is of %s: %v", text, got, err)
		}
	}
	for _, c := range []struct {
		to, from string
		want     int
	}{{"3.7.3", "3.6.16", 1}, {"3.6.16", "3.6.0", 0}, {"3.5.0", "3.7.3", -2}, {"4.0.0", "3.9.0", 100}, {"3.9.0", "4.0.0", -100}} {
		to, from := Must(c.to).MajorMinor(), Must(c.from).MajorMinor()
		if got := to.Steps(from); got != c.want {
			t.Errorf("from %s to %s there are %d steps", from, to, got)
		}
		if got := to.Compare(from); (got > 0) != (c.want > 0) || (got < 0) != (c.want < 0) {
			t.Errorf("%s to %s: %d", to, from, got)
		}
	}
	if got := Must("3.6.16").MajorMinor().Next(-1); got != (MajorMinor{3, 5}) {
		t.Errorf("before 3.6 is %s", got)
	}
}
