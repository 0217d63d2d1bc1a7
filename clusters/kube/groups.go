package kube

import (
	"errors"

	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	batchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	networkingv1 "k8s.io/client-go/kubernetes/typed/networking/v1"
	policyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
	"k8s.io/client-go/rest"
)

// groups holds the clients for the built-in API groups that Quorate uses. The clients share connections. client-go's
// clientset would link all existing groups into the program.
type groups struct {
	core         *corev1.CoreV1Client
	apps         *appsv1.AppsV1Client
	batch        *batchv1.BatchV1Client
	policy       *policyv1.PolicyV1Client
	networking   *networkingv1.NetworkingV1Client
	coordination *coordinationv1.CoordinationV1Client
	events       *eventsv1.EventsV1Client
}

func newGroups(config *rest.Config) (g groups, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return groups{}, err
	}
	var errs [7]error
	g.core, errs[0] = corev1.NewForConfigAndClient(config, client)
	g.apps, errs[1] = appsv1.NewForConfigAndClient(config, client)
	g.batch, errs[2] = batchv1.NewForConfigAndClient(config, client)
	g.policy, errs[3] = policyv1.NewForConfigAndClient(config, client)
	g.networking, errs[4] = networkingv1.NewForConfigAndClient(config, client)
	g.coordination, errs[5] = coordinationv1.NewForConfigAndClient(config, client)
	g.events, errs[6] = eventsv1.NewForConfigAndClient(config, client)
	return g, errors.Join(errs[:]...)
}

func (g groups) CoreV1() corev1.CoreV1Interface                         { return g.core }
func (g groups) AppsV1() appsv1.AppsV1Interface                         { return g.apps }
func (g groups) BatchV1() batchv1.BatchV1Interface                      { return g.batch }
func (g groups) PolicyV1() policyv1.PolicyV1Interface                   { return g.policy }
func (g groups) NetworkingV1() networkingv1.NetworkingV1Interface       { return g.networking }
func (g groups) CoordinationV1() coordinationv1.CoordinationV1Interface { return g.coordination }
func (g groups) EventsV1() eventsv1.EventsV1Interface                   { return g.events }
