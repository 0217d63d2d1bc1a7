package faultproxy

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault handles a request instead of the API server. It calls serve to forward the request to the API server.
type Fault func(w http.ResponseWriter, r *http.Request, serve http.Handler)

// Then returns a fault that calls broken after f has cut the connection, but before the client notices.
func (f Fault) Then(broken func()) Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.Handler) {
		defer func() {
			if cut := recover(); cut != nil {
				broken()
				panic(cut)
			}
		}()
		f(w, r, serve)
	}
}

// Script returns the fault for a request, or nil to forward it.
type Script func(Request) Fault

// Answer returns a fault that rejects the request with the given HTTP status code, as the API server would. The request
// does not take effect.
func Answer(code int) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		drain(r)
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure,
			Message:  "injected fault: " + strconv.Itoa(code) + " " + http.StatusText(code),
			Reason:   metav1.StatusReason(strings.ReplaceAll(http.StatusText(code), " ", "")),
			Code:     int32(code),
		})
	}
}

// Hang returns a fault that never responds. It ends when the client disconnects or the proxy is closed.
func Hang() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		drain(r)
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

// Pause returns a fault that holds the request until the channel is closed, and then forwards it.
func Pause(until <-chan struct{}) Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.Handler) {
		<-until
		serve.ServeHTTP(w, r)
	}
}

// Refuse returns a fault that cuts the connection before the request takes effect.
func Refuse() Fault {
	return func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }
}

// DropAnswer returns a fault that forwards the request so that it takes effect, calls then if it is not nil, and cuts
// the connection without a response.
func DropAnswer(then func()) Fault {
	return func(_ http.ResponseWriter, r *http.Request, serve http.Handler) {
		serve.ServeHTTP(httptest.NewRecorder(), r)
		if then != nil {
			then()
		}
		panic(http.ErrAbortHandler)
	}
}

// DropSuccess is like DropAnswer, but only for the nth request that succeeds. All other requests are forwarded
// unchanged.
func DropSuccess(n int, then func()) Fault {
	var seen atomic.Int32
	return func(w http.ResponseWriter, r *http.Request, serve http.Handler) {
		answer := httptest.NewRecorder()
		serve.ServeHTTP(answer, r)
		if succeeded(answer.Code, answer.Header()) && int(seen.Add(1)) == n {
			if then != nil {
				then()
			}
			panic(http.ErrAbortHandler)
		}
		replay(w, answer)
	}
}

// replay writes a recorded response. Trailers must not be written before the body.
func replay(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	after := http.Header{}
	for key, values := range answer.Header() {
		if strings.HasPrefix(key, http.TrailerPrefix) {
			after[key] = values
			continue
		}
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
	maps.Copy(w.Header(), after)
}

// Once returns a fault that breaks the first request with the given fault and forwards all other requests.
func Once(fault Fault) Fault {
	var done atomic.Bool
	return func(w http.ResponseWriter, r *http.Request, serve http.Handler) {
		if done.Swap(true) {
			serve.ServeHTTP(w, r)
			return
		}
		fault(w, r, serve)
	}
}

// At returns a script that breaks the request with the given index.
func At(index int, fault Fault) Script {
	return when(fault, func(r Request) bool { return r.Index == index })
}

// AtWrite returns a script that breaks the nth request that writes.
func AtWrite(n int, fault Fault) Script {
	return when(fault, func(r Request) bool { return r.Write == n })
}

// On returns a script that breaks every request with this verb for this resource. An empty verb matches all verbs.
func On(verb, resource string, fault Fault) Script {
	return when(fault, func(r Request) bool { return r.Resource == resource && (verb == "" || r.Verb == verb) })
}

// FirstOfEach returns a script that breaks the first request with each verb for each object or collection.
func FirstOfEach(fault Fault) Script {
	seen := map[[4]string]bool{}
	return when(fault, func(r Request) bool {
		key := [4]string{r.Verb, r.Resource, r.Namespace, r.Name}
		first := !seen[key]
		seen[key] = true
		return first
	})
}

func when(fault Fault, condition func(Request) bool) Script {
	return func(r Request) Fault {
		if condition(r) {
			return fault
		}
		return nil
	}
}

// drain reads the body, because the server does not notice that the client has disconnected before the body is read.
func drain(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
