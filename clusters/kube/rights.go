package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Lack is a right that is missing.
type Lack int

// The rights that may be missing.
const (
	NoRightMissing Lack = iota
	// RightToImpersonate is that of the process to act as somebody else.
	RightToImpersonate
	// AnyOtherRight is one of the user that a request was made as.
	AnyOtherRight
)

// RightMissing tells whether an error is for want of a right, and of which. What admission forbids,
// such as what exceeds a quota, is not: no right would change that.
func RightMissing(err error) Lack {
	if !apierrors.IsForbidden(err) && !errors.Is(err, ErrForbidden) {
		return NoRightMissing
	}
	_, words, refused := strings.Cut(err.Error(), ` is forbidden: User "`)
	switch {
	case !refused:
		return NoRightMissing
	case strings.Contains(words, `" cannot impersonate`): // Kubernetes 1.36 has impersonate-on:serviceaccount:list
		return RightToImpersonate
	}
	return AnyOtherRight
}
