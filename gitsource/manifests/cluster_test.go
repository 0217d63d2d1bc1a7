package manifests

func clusterNamed(name string) string {
	return "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata:\n  name: " + name + "\nspec:\n  version: 3.6.5\n"
}
