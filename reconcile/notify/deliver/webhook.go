package deliver

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"quorate.dev/quorate/reconcile/notify"
)

// Webhook is a destination for messages.
type Webhook struct {
	URL    string
	Format notify.Format
	// Secret is used to sign messages. If it is empty, messages are not signed.
	Secret string
	// Agent is the User-Agent header of requests.
	Agent string
}

// Post posts a message. It retries transient errors a limited number of times, with the same ID, as long as the
// deadline of ctx allows.
func (w Webhook) Post(ctx context.Context, m notify.Message) error {
	body, mediaType, err := m.Encode(w.Format)
	if err != nil {
		return err
	}
	r := request{method: http.MethodPost, url: w.URL, body: body, header: http.Header{}, secrets: []string{w.Secret}}
	r.header.Set("Content-Type", mediaType)
	if w.Secret != "" {
		now := time.Now()
		signature, err := notify.Sign(w.Secret, m.ID, now, body)
		if err != nil {
			return err
		}
		r.header.Set("Webhook-Id", m.ID)
		r.header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
		r.header.Set("Webhook-Signature", signature)
	}
	_, err = r.do(ctx, w.Agent)
	return err
}
