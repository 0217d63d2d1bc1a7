package etcd

import "time"

// Age makes all connections look as if they had not been used for that much longer.
func (c *Clients) Age(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.open {
		client.lastUsed = client.lastUsed.Add(-by)
	}
}
