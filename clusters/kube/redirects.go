package kube

import "net/http"

// withoutRedirects makes every redirect an answer like others, which is an error. API servers redirect nothing, and one
// that does could have requests sent, with the token, to what only this machine reaches, and have errors quote what is
// there.
func withoutRedirects(next http.RoundTripper) http.RoundTripper { return &staying{next} }

// staying hides where answers redirect to.
type staying struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s *staying) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if answer != nil && answer.StatusCode/100 == 3 {
		answer.Header.Del("Location") // without one, there is nothing to follow
	}
	return answer, err
}

// WrappedRoundTripper is for client-go, which looks for what is below.
func (s *staying) WrappedRoundTripper() http.RoundTripper { return s.next }
