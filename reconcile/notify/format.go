package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// Message is a single notification.
type Message struct {
	// ID identifies the message. It remains the same if the message is sent again.
	ID string `json:"id"`
	// Time is the time of the message.
	Time time.Time `json:"time"`
	// Context is the name that identifies the run.
	Context string `json:"context"`
	// Revision is the revision of the source, or empty if the source could not be read.
	Revision string `json:"revision,omitempty"`
	// Summary summarizes the events in one line.
	Summary string `json:"summary"`
	// Events contains at most mostEvents events. More is the number of omitted events.
	Events []Event `json:"events"`
	More   int     `json:"more,omitempty"`
}

const (
	// mostEvents is the maximum number of events in a message, and mostLines is the maximum number in a chat message.
	mostEvents, mostLines = 50, 20
)

// NewMessage creates a message from events.
func NewMessage(id string, at time.Time, context, revision string, events []Event) Message {
	warnings := 0
	for _, e := range events {
		if e.Warning {
			warnings++
		}
	}
	m := Message{ID: id, Time: at.UTC().Truncate(time.Second), Context: printable.Line(context),
		Revision: printable.Short(revision, longestMessage), Events: events}
	m.Summary = decide.Count(len(events), "event")
	if warnings > 0 {
		m.Summary += ", " + decide.Count(warnings, "warning")
	}
	if len(events) == 1 {
		m.Summary = events[0].String()
	}
	if len(events) > mostEvents {
		m.Events, m.More = warningsFirst(events)[:mostEvents], len(events)-mostEvents
	}
	return m
}

// warningsFirst returns the events, with warnings first.
func warningsFirst(events []Event) []Event {
	var first, rest []Event
	for _, e := range events {
		if e.Warning {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	return append(first, rest...)
}

// Format is a message format.
type Format string

// The formats.
const (
	JSON        Format = "json"
	Slack       Format = "slack"
	CloudEvents Format = "cloudevents"
)

// EventType is the type of a CloudEvent.
const EventType = "dev.quorate.run.news.v1"

// Encode returns the encoded message, and its media type.
func (m Message) Encode(f Format) (body []byte, mediaType string, err error) {
	mediaType = "application/json"
	switch f {
	case JSON:
		body, err = json.Marshal(m)
	case Slack:
		body, err = json.Marshal(struct {
			Text string `json:"text"`
		}{m.slack()})
	case CloudEvents:
		mediaType = "application/cloudevents+json"
		body, err = json.Marshal(struct {
			SpecVersion string    `json:"specversion"`
			ID          string    `json:"id"`
			Source      string    `json:"source"`
			Type        string    `json:"type"`
			Time        time.Time `json:"time"`
			MediaType   string    `json:"datacontenttype"`
			Data        Message   `json:"data"`
		}{"1.0", m.ID, "/quorate/" + escapePath(m.Context), EventType, m.Time, "application/json", m})
	}
	return printable.JSON(body), mediaType, err
}

// escapePath escapes text for use in the path of a URI.
func escapePath(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// slack returns the message as chat text. Untrusted text is formatted as code, in which mentions, links and markup are
// not interpreted.
func (m Message) slack() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Quorate %s", inCode(m.Context))
	if m.Revision != "" {
		fmt.Fprintf(&b, " at %s", inCode(m.Revision))
	}
	events, more := m.Events, m.More
	if len(events) > mostLines {
		events, more = warningsFirst(events)[:mostLines], more+len(events)-mostLines
	}
	for _, e := range events {
		sign := ":information_source:"
		if e.Warning {
			sign = ":warning:"
		}
		fmt.Fprintf(&b, "\n%s %s", sign, inCode(e.String()))
	}
	if more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return b.String()
}

var forSlack = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'")

func inCode(s string) string { return "`" + forSlack.Replace(printable.Short(s, longestMessage)) + "`" }

// Sign returns the signature of a message sent at the given time, as defined by Standard Webhooks. If the secret begins
// with whsec_, the key is the base64-encoded data after that prefix. Otherwise, the key is the secret itself.
func Sign(secret, id string, at time.Time, body []byte) (string, error) {
	key := []byte(secret)
	if encoded, is := strings.CutPrefix(secret, "whsec_"); is {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return "", errors.New("the text after whsec_ is not base64")
		}
	}
	if len(key) < shortestKey {
		return "", fmt.Errorf("the secret must have at least %d bytes", shortestKey)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// shortestKey is the minimum key length that Standard Webhooks requires, in bytes.
const shortestKey = 24
