package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind is the kind of an operation.
type kind string

const (
	put  kind = "put"
	get  kind = "get"
	swap kind = "compare-and-swap"
)

// operation is a request for a key and its result. Every value is written at most once.
type operation struct {
	client int
	key    string
	kind   kind
	// value is the value that was written or read. It is empty for a missing key.
	value string
	// expected is the value that a compare-and-swap requires, and found is the different value that it found.
	expected, found string
	swapped         bool
	// unknown marks a write without a response, which may have taken effect at any time after the call, or never.
	unknown      bool
	call, answer time.Duration
}

// saw returns the value that the operation has seen, and whether it has seen any value.
func (o operation) saw() (value string, found bool) {
	switch {
	case o.kind == get:
		return o.value, true
	case o.kind != swap || o.unknown:
		return "", false
	case o.swapped:
		return o.expected, true
	}
	return o.found, true
}

// register is the model of a key, which contains the value that was written last.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(operation).key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		o, holds := input.(operation), state.(string)
		switch {
		case o.kind == put:
			return true, o.value
		case o.kind == get:
			return o.value == holds, holds
		case o.unknown && o.expected != holds:
			return true, holds
		case o.unknown || o.swapped:
			return o.expected == holds, o.value
		}
		return o.found == holds && o.found != o.expected, holds
	},
}

// linearizable returns an error if the operations are not linearizable, or if the check does not finish in time.
// Operations are linearizable if all responses are correct under the assumption that each operation takes effect at a
// single moment between its call and its response.
func linearizable(operations []operation, timeout time.Duration) error {
	var history []porcupine.Operation
	for _, o := range settled(operations) {
		history = append(history, porcupine.Operation{ClientId: o.client, Input: o, Call: int64(o.call), Return: int64(o.answer)})
	}
	switch porcupine.CheckOperationsTimeout(register, history, timeout) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return errors.New("is not linearizable: something acknowledged was lost, or something old was read")
	case porcupine.Unknown:
	}
	return fmt.Errorf("was not judged within %s", timeout)
}

// settled uses the other operations to resolve writes without a response. If the value of such a write was seen, the
// write took effect before the first response that contained the value, because no other operation writes this value.
// If its value was never seen, the write did not affect any response and is omitted.
func settled(operations []operation) []operation {
	first := map[[2]string]time.Duration{}
	for _, o := range operations {
		value, found := o.saw()
		if at, known := first[[2]string{o.key, value}]; found && (!known || o.answer < at) {
			first[[2]string{o.key, value}] = o.answer
		}
	}
	var list []operation
	for _, o := range operations {
		if o.unknown {
			at, seen := first[[2]string{o.key, o.value}]
			if !seen {
				continue
			}
			o.answer = max(at, o.call)
		}
		list = append(list, o)
	}
	return list
}

// interruption summarizes the failed writes of a history.
type interruption struct {
	written int
	// failed is the number of writes that returned an error or timed out.
	failed int
	// longest is the longest time without an acknowledged write.
	longest time.Duration
	// why counts failed writes by error.
	why map[string]int
}

// interrupted summarizes a history that lasted for the given duration.
func interrupted(operations []operation, took time.Duration) interruption {
	acknowledged := []time.Duration{0, took}
	i := interruption{}
	for _, o := range operations {
		switch {
		case o.kind == get:
		case o.unknown:
			i.failed++
		default:
			i.written++
			acknowledged = append(acknowledged, o.answer)
		}
	}
	slices.Sort(acknowledged)
	for n := range acknowledged[1:] {
		i.longest = max(i.longest, acknowledged[n+1]-acknowledged[n])
	}
	return i
}

func (i interruption) String() string {
	var why []string
	for text, n := range i.why {
		why = append(why, fmt.Sprintf("%d times %s", n, text))
	}
	slices.Sort(why)
	return strings.TrimSuffix(fmt.Sprintf("%d writes, none acknowledged for %s at most, %d failed: %s",
		i.written, i.longest.Round(time.Millisecond), i.failed, strings.Join(why, "; ")), ": ")
}

// TestHistoryCatches checks that linearizable rejects histories that a correct register cannot produce.
func TestHistoryCatches(t *testing.T) {
	ms := func(call, answer int) operation {
		return operation{key: "k", call: time.Duration(call) * time.Millisecond, answer: time.Duration(answer) * time.Millisecond}
	}
	writes := func(o operation, value string) operation { o.kind, o.value = put, value; return o }
	reads := func(o operation, value string) operation { o.kind, o.value = get, value; return o }
	swaps := func(o operation, from, to string) operation {
		o.kind, o.expected, o.value, o.swapped = swap, from, to, true
		return o
	}
	finds := func(o operation, from, to, found string) operation {
		o = swaps(o, from, to)
		o.swapped, o.found = false, found
		return o
	}
	unanswered := func(o operation) operation { o.unknown = true; return o }
	other := func(o operation) operation { o.key = "other"; return o }
	for _, test := range []struct {
		name    string
		history []operation
		good    bool
	}{
		{"one after the other", []operation{writes(ms(0, 1), "a"), reads(ms(2, 3), "a"), swaps(ms(4, 5), "a", "b"), finds(ms(6, 7), "a", "c", "b")}, true},
		{"at the same time", []operation{writes(ms(0, 9), "a"), writes(ms(1, 2), "b"), reads(ms(3, 4), "b"), reads(ms(5, 6), "a")}, true},
		{"a write is lost", []operation{writes(ms(0, 1), "a"), writes(ms(2, 3), "b"), reads(ms(4, 5), "a")}, false},
		{"all is lost", []operation{writes(ms(0, 1), "a"), reads(ms(2, 3), "")}, false},
		{"a swap is lost", []operation{writes(ms(0, 1), "a"), swaps(ms(2, 3), "a", "b"), swaps(ms(4, 5), "a", "c")}, false},
		{"reads go back", []operation{writes(ms(0, 9), "a"), reads(ms(1, 2), "a"), reads(ms(3, 4), "")}, false},
		{"refused though it holds", []operation{writes(ms(0, 1), "a"), finds(ms(2, 3), "a", "b", "a")}, false},
		{"unanswered, seen later", []operation{unanswered(writes(ms(0, 1), "a")), reads(ms(50, 51), ""), reads(ms(90, 91), "a")}, true},
		{"unanswered, seen and gone", []operation{unanswered(writes(ms(0, 1), "a")), reads(ms(50, 51), "a"), reads(ms(90, 91), "")}, false},
		{"unanswered, never seen", []operation{unanswered(writes(ms(0, 1), "a")), reads(ms(90, 91), "")}, true},
		{"unanswered swap", []operation{writes(ms(0, 1), "a"), unanswered(swaps(ms(2, 3), "a", "b")), reads(ms(90, 91), "b")}, true},
		{"unanswered swap of what was not there", []operation{writes(ms(0, 1), "a"), unanswered(swaps(ms(2, 3), "c", "b")), reads(ms(90, 91), "b")}, false},
		{"lost beside another key", []operation{writes(ms(0, 1), "a"), other(writes(ms(2, 3), "b")), reads(ms(4, 5), "")}, false},
	} {
		if err := linearizable(test.history, patience); (err == nil) != test.good {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	i := interrupted([]operation{writes(ms(0, 10), "a"), unanswered(writes(ms(20, 30), "b")), reads(ms(40, 50), "a"), writes(ms(40, 60), "c")}, 65*time.Millisecond)
	if i.written != 2 || i.failed != 1 || i.longest != 50*time.Millisecond {
		t.Errorf("two writes, one without an answer, 50 ms between those that have one: %s", i)
	}
}
