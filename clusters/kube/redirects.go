package kube

import "net/http"

// withoutRedirects turns every redirect into an ordinary response, which the client treats as an error. API servers do
// not redirect. A malicious server could redirect requests, including the token, to addresses that only this machine
// can reach, and learn from the errors which servers exist there.
func withoutRedirects(next http.RoundTripper) http.RoundTripper { return &staying{next} }

// staying removes the target of redirects.
type staying struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s *staying) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if answer != nil && answer.StatusCode/100 == 3 {
		answer.Header.Del("Location") // without a location, the client does not follow the redirect
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the underlying transport.
func (s *staying) WrappedRoundTripper() http.RoundTripper { return s.next }
