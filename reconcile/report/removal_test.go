package report_test

import (
	"os"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// held returns a report with two removals: all clusters of one source, and most of the clusters whose source is
// unknown.
func held() report.Report {
	const shop, both = "main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90", "main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90 v2@sha1:607ee6319d77cd807258bb1457d152441639f0a4"
	done := decide.Decision{Rule: decide.Converged, Verdict: decide.Done, Message: "as declared"}
	return report.Report{
		Revision: both,
		Warnings: []string{"https://git.example.com/shop.git declares no cluster"},
		Clusters: []report.Cluster{
			{Namespace: "shop", Name: "cart", Decision: done, Warnings: []string{"main@sha1:aff7… no longer declares it: it is kept as last applied"}},
			{Namespace: "shop", Name: "stock", Decision: done},
		},
		Removals: []report.Removal{
			{Source: "https://git.example.com/shop.git", Revision: shop, Clusters: []string{"shop/cart"}, Of: 1},
			{Revision: both, Clusters: []string{"a/a", "b/b\x1b[31m"}, Of: 3},
		},
	}
}

func ExampleText_removals() {
	_ = report.Text(os.Stdout, held(), report.Style{})
	// Output:
	// revision main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90 v2@sha1:607ee6319d77cd807258bb1457d152441639f0a4
	// shop/cart  Done   Converged
	//     as declared
	//     warning main@sha1:aff7… no longer declares it: it is kept as last applied
	// shop/stock  Done   Converged
	//     as declared
	// warning https://git.example.com/shop.git declares no cluster
	// held main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90 no longer declares 1 of 1 cluster of https://git.example.com/shop.git: shop/cart
	// held main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90 v2@sha1:607ee6319d77cd807258bb1457d152441639f0a4 no longer declares 2 of 3 clusters: a/a, b/b\x1b[31m
	//     these clusters keep their last applied state and are still repaired until they are declared again; if the removals are intended: --confirm-removals='main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90 v2@sha1:607ee6319d77cd807258bb1457d152441639f0a4'
	// 2 clusters, 2 done, 3 removals held
}

func ExampleJSON_removals() {
	_ = report.JSON(os.Stdout, held())
	// Output:
	// {
	//   "revision": "main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90 v2@sha1:607ee6319d77cd807258bb1457d152441639f0a4",
	//   "clusters": [
	//     {
	//       "namespace": "shop",
	//       "name": "cart",
	//       "decision": {
	//         "rule": "Converged",
	//         "verdict": "Done",
	//         "message": "as declared"
	//       },
	//       "warnings": [
	//         "main@sha1:aff7… no longer declares it: it is kept as last applied"
	//       ]
	//     },
	//     {
	//       "namespace": "shop",
	//       "name": "stock",
	//       "decision": {
	//         "rule": "Converged",
	//         "verdict": "Done",
	//         "message": "as declared"
	//       }
	//     }
	//   ],
	//   "warnings": [
	//     "https://git.example.com/shop.git declares no cluster"
	//   ],
	//   "removals": [
	//     {
	//       "source": "https://git.example.com/shop.git",
	//       "revision": "main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90",
	//       "clusters": [
	//         "shop/cart"
	//       ],
	//       "of": 1
	//     },
	//     {
	//       "revision": "main@sha1:aff73df0a1b2c3d4e5f60718293a4b5c6d7e8f90 v2@sha1:607ee6319d77cd807258bb1457d152441639f0a4",
	//       "clusters": [
	//         "a/a",
	//         "b/b\u001b[31m"
	//       ],
	//       "of": 3
	//     }
	//   ]
	// }
}
