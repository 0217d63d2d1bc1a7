package objects

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/procgroup"
	"quorate.dev/quorate/reconcile/decide"
)

// firstGuest is the number of the first guest in a world.
const firstGuest = 10

// TestRealEtcdJoinsGuests checks that a member joins a cluster that another tool created, with the file that this package
// writes, that it restarts with its sealed file, and that it serves alone once the guests are removed. The guests have
// replicas' names and advertise two peer URLs.
func TestRealEtcdJoinsGuests(t *testing.T) {
	for text, binary := range etcdToTest(t) {
		for _, size := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", text, size), func(t *testing.T) {
				t.Parallel()
				c := threeMembers(t, text)
				c.Spec.TLS.Mode = v1alpha1.TLSDisabled
				w := newWorld(t, c, binary)
				w.in.Record = decide.Record{Token: "t"}
				for n := range size {
					w.startGuest(n, size)
				}
				w.eventually("write a key", func() bool {
					_, err := w.ask(firstGuest, "/v3/kv/put", map[string]any{"key": encode("k"), "value": encode("v")})
					return err == nil
				})
				w.joinGuests()
				w.in.Record = w.in.Record.With(decide.RecordedMember{Ordinal: 0, Mode: decide.Sealed})
				w.stop(0)
				w.start(0)
				w.waitReady(0)
				w.releaseGuests()
				w.eventually("read the key", func() bool {
					got, err := w.ask(0, "/v3/kv/range", map[string]any{"key": encode("k")})
					return err == nil && got["count"] == "1"
				})
			})
		}
	}
}

func (w *world) guestURLs(n int) []string {
	return []string{fmt.Sprintf("http://%s:2380", w.address(firstGuest+n)), fmt.Sprintf("http://%s:2382", w.address(firstGuest+n))}
}

// startGuest starts a member of a cluster of the given size, as a hand-written StatefulSet would.
func (w *world) startGuest(n, size int) {
	w.Helper()
	var cluster []string
	for i := range size {
		for _, url := range w.guestURLs(i) {
			cluster = append(cluster, PodName("a", i)+"="+url)
		}
	}
	name := PodName("a", firstGuest+n)
	log, err := os.Create(w.path(name + ".log"))
	if err != nil {
		w.Fatal(err)
	}
	defer log.Close()
	urls, client := strings.Join(w.guestURLs(n), ","), fmt.Sprintf("http://%s:2379", w.address(firstGuest+n))
	m := &member{exited: make(chan struct{})}
	m.process = exec.Command("unshare", "--mount", "sh", "-c", `mount --bind "$1" /etc/hosts && shift && exec "$@"`,
		"sh", w.path("hosts"), w.binary, "--name="+PodName("a", n), "--data-dir="+w.path(name), "--unsafe-no-fsync",
		"--listen-peer-urls="+urls, "--initial-advertise-peer-urls="+urls, "--listen-client-urls="+client,
		"--advertise-client-urls="+client, "--initial-cluster="+strings.Join(cluster, ","))
	m.process.Stdout, m.process.Stderr = log, log
	m.process.SysProcAttr = procgroup.WithParent()
	if err := m.process.Start(); err != nil {
		w.Fatal(err)
	}
	go func() { _ = m.process.Wait(); close(m.exited) }()
	w.members[firstGuest+n] = m
}

// joinGuests adds the first replica as a learner, starts it, and promotes it.
func (w *world) joinGuests() {
	w.Helper()
	w.eventually("add a-0", func() bool {
		_, err := w.ask(firstGuest, "/v3/cluster/member/add", w.learner(0))
		return err == nil
	})
	answer := w.call(firstGuest, "/v3/cluster/member/list", map[string]any{})
	clusterID := w.id(answer["header"].(map[string]any)["cluster_id"])
	w.in.Record.ClusterID, w.in.Record.Adopted = clusterID, clusterID
	w.in.Peers = map[string][]string{}
	var learner any
	for _, m := range answer["members"].([]any) {
		fields := m.(map[string]any)
		var urls []string
		for _, url := range fields["peerURLs"].([]any) {
			urls = append(urls, url.(string))
		}
		if slices.Equal(urls, []string{PeerURL(w.in.Cluster, 0)}) {
			learner, w.in.Peers[PodName("a", 0)] = fields["ID"], urls
			continue
		}
		id := w.id(fields["ID"])
		w.in.Record.Guests = append(w.in.Record.Guests, id)
		w.in.Peers[fmt.Sprintf("guest-%016x", uint64(id))] = urls
	}
	slices.Sort(w.in.Record.Guests)
	w.in.Record = w.in.Record.With(decide.RecordedMember{Ordinal: 0, Mode: decide.Joining})
	if _, err := EncodeRecord(w.in.Record); err != nil {
		w.Fatal(err)
	}
	w.start(0)
	w.eventually("promote a-0", func() bool {
		select {
		case <-w.members[0].exited:
			w.Fatalf("a-0 has exited:\n%s", w.log(0))
		default:
		}
		_, err := w.ask(firstGuest, "/v3/cluster/member/promote", map[string]any{"ID": learner})
		return err == nil
	})
	w.waitReady(0)
}

func (w *world) id(text any) decide.ID {
	id, err := strconv.ParseUint(fmt.Sprint(text), 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	return decide.ID(id)
}

// releaseGuests removes the guests. The last voter remains.
func (w *world) releaseGuests() {
	for _, guest := range w.in.Record.Guests {
		w.eventually("remove guest "+guest.String(), func() bool {
			_, err := w.ask(0, "/v3/cluster/member/remove", map[string]any{"ID": strconv.FormatUint(uint64(guest), 10)})
			return err == nil
		})
	}
	w.eventually("list a-0 only", func() bool { return len(w.believes(0)) == 1 })
}
