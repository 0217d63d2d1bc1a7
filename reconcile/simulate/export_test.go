package simulate

import "quorate.dev/quorate/reconcile/decide"

// Serving returns the clusters that clients reach: clusters with a ready pod, if the client Service routes to pods.
func (w *World) Serving() (ids []decide.ID) {
	for _, id := range w.clusters() {
		for n, v := range w.volumes {
			if w.objects[w.clientService()].leads && v.data.cluster == id && w.pods[n].ready && w.rafts[id].serves() {
				ids = append(ids, id)
				break
			}
		}
	}
	return ids
}

// RestoreVolume copies a claim and its data from another world.
func (w *World) RestoreVolume(n int, from *World) { w.volumes[n] = from.volumes[n] }

// RestoreRecord replaces the current record.
func (w *World) RestoreRecord(r decide.Record) { w.record = r }
