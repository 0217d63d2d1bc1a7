package steps_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"quorate.dev/quorate/reconcile/steps"
)

// diary is a hook that records its calls. The context of a step contains the step's name.
type diary struct {
	name string
	list *[]string
}

type within struct{}

func (d diary) Begin(ctx context.Context, s steps.Step) (context.Context, func(steps.End)) {
	before, _ := ctx.Value(within{}).(string)
	*d.list = append(*d.list, fmt.Sprintf("%s begins %s in %q", d.name, s.Name, before))
	return context.WithValue(ctx, within{}, s.Name), func(e steps.End) {
		*d.list = append(*d.list, fmt.Sprintf("%s ends %s: %s %s", d.name, s.Name, e.Outcome, e.Error))
	}
}

func TestAll(t *testing.T) {
	var list []string
	both := steps.All(nil, diary{"one", &list}, nil, diary{"two", &list})
	steps.Do(t.Context(), both, steps.Step{Name: "act"}, func(ctx context.Context) steps.End {
		list = append(list, fmt.Sprintf("in %v", ctx.Value(within{})))
		return steps.End{Outcome: steps.OK}
	})
	if want := []string{`one begins act in ""`, `two begins act in "act"`, "in act", "two ends act: ok ", "one ends act: ok "}; !slices.Equal(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
	if steps.All() != nil || steps.All(nil, nil) != nil {
		t.Error("no hooks are a hook")
	}
	if alone := (diary{"one", nil}); steps.All(nil, alone) != steps.Hook(alone) {
		t.Error("one hook is wrapped")
	}
	steps.Do(t.Context(), nil, steps.Step{}, func(context.Context) steps.End { list = nil; return steps.End{} })
	if list != nil {
		t.Error("without a hook, nothing is done")
	}
}

// A step that panics ends, and the panic continues.
func TestPanic(t *testing.T) {
	var list []string
	func() {
		defer func() { list = append(list, fmt.Sprintf("panics: %v", recover())) }()
		steps.Do(t.Context(), diary{"one", &list}, steps.Step{Name: "act"}, func(context.Context) steps.End { panic("burst") })
	}()
	if want := []string{`one begins act in ""`, "one ends act: error it panicked", "panics: burst"}; !slices.Equal(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
}
