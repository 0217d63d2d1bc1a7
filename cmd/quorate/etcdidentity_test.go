package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/snapshot"
)

// askWho waits until a linearizable read from an etcd returns the value that the test has written. It returns the
// identity and revision of that etcd.
func askWho(t *testing.T, url string) (snapshot.Identity, int64) {
	t.Helper()
	var answer struct {
		Header struct {
			ClusterID uint64 `json:"cluster_id,string"`
			MemberID  uint64 `json:"member_id,string"`
			Revision  int64  `json:"revision,string"`
		} `json:"header"`
		KVs []struct {
			Value string `json:"value"`
		} `json:"kvs"`
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // etcd is starting
		got, err := http.Post(url+"/v3/kv/range", "application/json", strings.NewReader(`{"key":"aw=="}`))
		if err == nil {
			err = json.NewDecoder(got.Body).Decode(&answer)
			got.Body.Close()
		}
		if err == nil && len(answer.KVs) == 1 && answer.KVs[0].Value == "dg==" {
			return snapshot.Identity{ClusterID: answer.Header.ClusterID, MemberID: answer.Header.MemberID}, answer.Header.Revision
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v: %+v", err, answer)
		}
	}
}
