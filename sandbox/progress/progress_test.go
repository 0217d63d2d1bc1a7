package progress

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

func TestPlainLines(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := To(writer)
	nothing := func() error { return nil }
	problem := errors.New("no")
	for _, err := range []error{
		p.Do("starting a thing", "started a thing", 0, nothing),
		p.Do("building another", "built another", 5*time.Minute, nothing),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := p.Do("trying", "tried", 0, func() error { return problem }); !errors.Is(err, problem) {
		t.Errorf("error is %v, want %v", err, problem)
	}
	p.Say("a fact")
	writer.Close()
	got, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	const want = "started a thing (0s)\nbuilding another, about 5m0s\nbuilt another (0s)\na fact\n"
	if string(got) != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestZeroIsSilent(t *testing.T) {
	called := false
	var p Progress
	p.Say("nothing")
	if err := p.Do("doing", "done", 0, func() error { called = true; return nil }); err != nil || !called {
		t.Errorf("called: %t, error %v", called, err)
	}
}

func TestRound(t *testing.T) {
	for exact, want := range map[time.Duration]string{
		1234567 * time.Nanosecond: "0s", 123 * time.Millisecond: "120ms", 1260 * time.Millisecond: "1.3s", 83400 * time.Millisecond: "1m23s",
	} {
		if got := Round(exact).String(); got != want {
			t.Errorf("Round(%s) = %s, want %s", exact, got, want)
		}
	}
}
