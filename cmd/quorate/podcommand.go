package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quorate.dev/quorate/deploy"
	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/signature"
)

// checkCommand rejects flags that the pods would reject: it checks the mode's command line with the given arguments. It
// does not check files or an API server, which only exist for pods.
func checkCommand(o deploy.Options) error {
	texts, err := deploy.Render(o)
	if err != nil {
		return err
	}
	known := strings.NewReplacer("$(SOURCE)", o.Source, "$(BRANCH)", o.Branch, "$(DIRECTORY)", o.Path,
		"$("+indexVariable+")", "0", "$("+completionsVariable+")", "1")
	for _, text := range texts {
		object, err := parseObject(text)
		if err != nil {
			return err
		}
		args := argsOf(object)
		for i := range args {
			args[i] = known.Replace(args[i])
		}
		if len(args) == 0 {
			continue
		}
		if err := checkRunOf(args[1:]); err != nil {
			return usageError{fmt.Errorf("the pods would refuse their command line: %w", err)}
		}
	}
	return nil
}

func checkRunOf(args []string) error {
	f := &runFlags{}
	run := newRunOf(f, streams{})
	if err := run.ParseFlags(args); err != nil {
		return err
	}
	return f.checkUnmounted(run.Flags())
}

// argsOf returns the arguments of the quorate container, or nil if the object has none.
func argsOf(object *unstructured.Unstructured) []string {
	path := []string{"spec", "template", "spec", "containers"}
	if object.GetKind() == "CronJob" {
		path = append([]string{"spec", "jobTemplate"}, path...)
	}
	containers, _, _ := unstructured.NestedSlice(object.Object, path...)
	for _, c := range containers {
		container, _ := c.(map[string]any)
		if name, _, _ := unstructured.NestedString(container, "name"); name == "quorate" {
			args, _, _ := unstructured.NestedStringSlice(container, "args")
			return args
		}
	}
	return nil
}

// checkUnmounted rejects flags that are wrong regardless of the content of mounted files.
func (f *runFlags) checkUnmounted(flags *pflag.FlagSet) error {
	problems := []error{f.loop.check(flags), f.approve.check(f.untilConverged, f.loop.on), f.metrics.check(),
		f.notify.checkAlone()}
	for _, chosen := range f.output.all() {
		problems = append(problems, oneOf("output", chosen.format, f.output.formats...))
	}
	if f.loop.on && f.live.places.several() {
		problems = append(problems, errLoopOfSeveral)
	}
	f.source.namespaces = f.live.namespaces
	problems = append(problems, f.source.checkTogether())
	if !f.source.live() {
		_, err := f.source.checkEach(source.checkUnmounted)
		problems = append(problems, err)
	}
	_, err := f.live.check()
	return errors.Join(append(problems, err)...)
}

// checkUnmounted rejects a source that pods cannot read, regardless of their credentials.
func (s source) checkUnmounted() error {
	if err := s.checkAddress(); err != nil {
		return err
	}
	if err := s.checkIdentity(); err != nil {
		return err
	}
	if err := s.as.check(s); err != nil {
		return err
	}
	if err := s.checkVerify(); err != nil {
		return err
	}
	// The location needs no credentials, because the files with credentials do not exist here.
	return gitsource.Options{Location: ".", Selector: s.selector, Proxy: s.proxy,
		Verify:  gitsource.Verification{Mode: signature.Mode(s.verify)},
		Options: manifests.Options{Path: s.path}}.Check()
}

// checkIdentity rejects ssh without a credentials directory, because the environment cannot hold a key.
func (s source) checkIdentity() error {
	if address, err := remote.ParseAddress(s.location); err == nil && address.Scheme == "ssh" && s.credentials == "" {
		return usageError{fmt.Errorf("--source %s: ssh wants a private key, and known_hosts beside it: "+
			"--private mounts the Secret quorate-git, which is to hold them", s.location)}
	}
	return nil
}

// checkAddress rejects a location that pods cannot read.
func (s source) checkAddress() error {
	if !remote.IsAddress(s.location) {
		return usageError{fmt.Errorf("--source %q: want the URL of a git repository, or %q: "+
			"pods do not see this machine's directories", s.location, ofCluster)}
	}
	if _, err := remote.ParseAddress(s.location); err != nil {
		return usageError{fmt.Errorf("--source: %w", err)}
	}
	return nil
}
