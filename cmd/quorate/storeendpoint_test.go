package main

import "testing"

// TestEndpointDistinguishesStoresWithSameURL checks that stores with the same URL but different endpoints are
// distinguished.
func TestEndpointDistinguishesStoresWithSameURL(t *testing.T) {
	for _, c := range []struct{ url, endpoint, region, want string }{
		{"s3://backups", "", "", ""},
		{"s3://backups", "", "eu-central-1", ""},
		{"s3://backups", "", "cn-north-1", "aws-cn"},
		{"s3://backups", "", "us-gov-west-1", "aws-us-gov"},
		{"s3://backups", "https://minio.example.com", "cn-north-1", "https://minio.example.com"},
		{"file:///backups", "", "cn-north-1", ""},
	} {
		var f storeFlags
		f.S3.Endpoint, f.S3.Region = c.endpoint, c.region
		if got := f.endpoint(c.url); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
