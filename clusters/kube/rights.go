package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Lack is a kind of missing right.
type Lack int

// Kinds of missing rights.
const (
	NoRightMissing Lack = iota
	// RightToImpersonate is the process's right to impersonate a user.
	RightToImpersonate
	// AnyOtherRight is a right of the user that made the request.
	AnyOtherRight
)

// RightMissing returns the kind of right that is missing according to an error, if any. Rejections by admission, for
// example because a quota is exceeded, do not count, because additional rights would not prevent them.
func RightMissing(err error) Lack {
	if !apierrors.IsForbidden(err) && !errors.Is(err, ErrForbidden) {
		return NoRightMissing
	}
	_, words, refused := strings.Cut(err.Error(), ` is forbidden: User "`)
	switch {
	case !refused:
		return NoRightMissing
	case strings.Contains(words, `" cannot impersonate`): // Kubernetes 1.36 reports impersonate-on:serviceaccount:list
		return RightToImpersonate
	}
	return AnyOtherRight
}
