package renderer

import (
	"errors"
	"path"
	"strings"
	"testing"
)

// tree holds the files that kustomize sees, by absolute name. Looking up a file whose content is broken returns an
// error.
type tree map[string]string

const broken = "an error"

func (t tree) Look(name string) (Entry, error) {
	if content, ok := t[name]; ok {
		if content == broken {
			return Entry{}, errBroken
		}
		return Entry{IsFile: true, Content: []byte(content)}, nil
	}
	var e Entry
	for file := range t {
		e.IsDir = e.IsDir || strings.HasPrefix(file, strings.TrimSuffix(name, "/")+"/")
		if path.Dir(file) == name && isKustomization(file) {
			e.Kustomizations = append(e.Kustomizations, path.Base(file))
		}
	}
	return e, nil
}

var errBroken = errors.New("it cannot be looked at")

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

var roomy = Limits{ObjectBytes: 1 << 20, Kustomizations: 10}

func render(files Files, limits Limits) (objects []string, err error) {
	err = Render(files, "/x", limits, func(o Object) error {
		objects = append(objects, o.Origin+": "+string(o.JSON)+o.Problem)
		return nil
	})
	return objects, err
}

func TestRender(t *testing.T) {
	objects, err := render(tree{"/x/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: p-\nbuildMetadata: [originAnnotations]\n", "/x/a.yaml": configMap}, roomy)
	want := `a.yaml: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"config.kubernetes.io/origin":"path: a.yaml\n"},"name":"p-a"}}`
	if err != nil || len(objects) != 1 || objects[0] != want {
		t.Errorf("objects %q, error %v", objects, err)
	}
}

// TestInvalidKustomizationsAreRefused checks that rendering an invalid or excessive kustomization returns a Refusal.
func TestInvalidKustomizationsAreRefused(t *testing.T) {
	small, few := roomy, roomy
	small.ObjectBytes, few.Kustomizations = 50, 2
	based := tree{"/x/kustomization.yaml": "resources: [../b]\n", "/b/kustomization.yaml": "resources: [../c]\n", "/c/kustomization.yaml": "resources: [a.yaml]\n", "/c/a.yaml": configMap}
	for name, c := range map[string]struct {
		files  tree
		limits Limits
		want   string
	}{
		"none":      {tree{"/x/a.yaml": configMap}, roomy, "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory '/x'"},
		"broken":    {tree{"/x/kustomization.yaml": "resorces: []\n"}, roomy, `invalid Kustomization: json: unknown field "resorces"`},
		"much text": {tree{"/x/kustomization.yaml": "resources: [a.yaml]\n", "/x/a.yaml": configMap + "data: {x: '" + strings.Repeat("x", 200<<10) + "'}\n"}, small, "a rendered object is larger than 50 bytes"},
		"bases":     {based, few, "more than 2 kustomizations are nested; to allow more, raise limits.objects"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render(c.files, c.limits)
			var refusal Refusal
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) || len(objects) > 0 {
				t.Errorf("objects %.200q, error %v", objects, err)
			}
		})
	}
	if objects, err := render(based, roomy); err != nil || len(objects) != 1 {
		t.Errorf("objects %q, error %v", objects, err)
	}
}

// TestErrorsEndRendering checks that rendering ends if Files or the caller's function returns an error.
func TestErrorsEndRendering(t *testing.T) {
	files := tree{"/x/kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "/x/a.yaml": broken, "/x/b.yaml": configMap}
	if objects, err := render(files, roomy); !errors.Is(err, errBroken) || len(objects) > 0 {
		t.Errorf("objects %q, error %v", objects, err)
	}
	enough := errors.New("enough")
	files["/x/a.yaml"] = strings.Replace(configMap, "name: a", "name: b", 1)
	if err := Render(files, "/x", roomy, func(Object) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
}
