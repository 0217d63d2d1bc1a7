package cache

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"quorate.dev/quorate/gitsource/pack"
)

// Objects holds git objects in memory.
type Objects struct {
	pack.ReadOnly
	mu     sync.Mutex
	byHash map[plumbing.Hash]plumbing.EncodedObject
	missed bool
}

var _ storer.EncodedObjectStorer = (*Objects)(nil)

func newObjects() *Objects { return &Objects{byHash: map[plumbing.Hash]plumbing.EncodedObject{}} }

// Missed reports whether a requested object was missing. In that case, the files that were read may be incomplete.
func (o *Objects) Missed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.missed
}

// EncodedObject returns an object.
func (o *Objects) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	object, ok := o.byHash[hash]
	o.missed = o.missed || !ok
	if !ok || kind != plumbing.AnyObject && object.Type() != kind {
		return nil, plumbing.ErrObjectNotFound
	}
	return object, nil
}

// EncodedObjectSize returns the size of an object.
func (o *Objects) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	object, err := o.EncodedObject(plumbing.AnyObject, hash)
	if err != nil {
		return 0, err
	}
	return object.Size(), nil
}

// HasEncodedObject returns plumbing.ErrObjectNotFound if the object is missing.
func (o *Objects) HasEncodedObject(hash plumbing.Hash) error {
	_, err := o.EncodedObject(plumbing.AnyObject, hash)
	return err
}

func (o *Objects) add(object plumbing.EncodedObject) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byHash[object.Hash()] = object
}

// Recorder reads from a store and records the objects that were read.
type Recorder struct {
	storer.EncodedObjectStorer
	Read *Objects
}

// Record returns a Recorder for a store.
func Record(store storer.EncodedObjectStorer) Recorder { return Recorder{store, newObjects()} }

// EncodedObject returns an object from the store.
func (r Recorder) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	object, err := r.EncodedObjectStorer.EncodedObject(kind, hash)
	if err == nil {
		r.Read.add(object)
	}
	return object, err
}

// encode writes the format of git cat-file --batch: a line with name, type and size, then the content.
func (o *Objects) encode(w io.Writer) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for hash, object := range o.byHash {
		if _, err := fmt.Fprintf(w, "%s %s %d\n", hash, object.Type(), object.Size()); err != nil {
			return err
		}
		r, err := object.Reader()
		if err != nil {
			return err
		}
		_, err = io.Copy(w, r)
		r.Close()
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the output of encode, and checks each object against its name.
func decode(content *bytes.Reader) (*Objects, error) {
	objects := newObjects()
	r := bufio.NewReader(content)
	for {
		object, err := decodeObject(r, content.Size())
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects.add(object)
	}
}

var errGarbled = errors.New("it is corrupt or truncated")

// decodeObject reads one object of at most limit bytes. It returns io.EOF at the end.
func decodeObject(r *bufio.Reader, limit int64) (plumbing.EncodedObject, error) {
	line, err := r.ReadString('\n')
	if err == io.EOF && line == "" {
		return nil, io.EOF
	}
	var name, kind string
	var size int64
	if n, _ := fmt.Sscanf(line, "%40s %6s %d\n", &name, &kind, &size); n != 3 || size < 0 || size > limit ||
		!plumbing.IsHash(name) {
		return nil, errGarbled
	}
	object := &plumbing.MemoryObject{}
	for _, t := range []plumbing.ObjectType{plumbing.CommitObject, plumbing.TagObject, plumbing.TreeObject,
		plumbing.BlobObject} {
		if t.String() == kind {
			object.SetType(t)
		}
	}
	content := make([]byte, size+1)
	if _, err := io.ReadFull(r, content); err != nil || content[size] != '\n' {
		return nil, errGarbled
	}
	if _, err := object.Write(content[:size]); err != nil {
		return nil, err
	}
	if object.Hash().String() != name {
		return nil, fmt.Errorf("the content of the object %s does not match its hash", name)
	}
	return object, nil
}
