package manifests

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Parse reads a stream of manifests, for example a deploy/install.yaml.
func Parse(text []byte) ([]*unstructured.Unstructured, error) {
	docs, err := splitYAML(text)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for i, d := range docs {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(d, &u.Object); err != nil {
			return nil, fmt.Errorf("read manifest %d: %w", i+1, err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
			return nil, fmt.Errorf("read manifest %d: apiVersion, kind or metadata.name is missing", i+1)
		}
		objects = append(objects, u)
	}
	return objects, nil
}

func splitYAML(text []byte) ([][]byte, error) {
	r := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var docs [][]byte
	for {
		d, err := r.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		docs = append(docs, d)
	}
}
