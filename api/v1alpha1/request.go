package v1alpha1

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RequestKind of an order.
type RequestKind string

const (
	// RequestFailover moves the primary: planned, or forced when AllowDataLoss is set.
	RequestFailover RequestKind = "failover"
	// RequestRestart restarts one replica, or all of them in rolling order.
	RequestRestart RequestKind = "restart"
	// RequestRebootstrap re-arms the bootstrap's circuit breaker.
	RequestRebootstrap RequestKind = "rebootstrap"
)

// Request is an order to be carried out once, in the annotation AnnotationRequest.
// It carries what its author saw, so that a stale view is refused.
type Request struct {
	// ID is unique; an id that was answered is not carried out again.
	ID   string      `json:"id"`
	Kind RequestKind `json:"kind"`
	// Target replica; empty lets the operator choose.
	Target string `json:"target,omitempty"`
	// ExpectedPrimary is the primary that the author saw; empty skips the check.
	ExpectedPrimary string `json:"expectedPrimary,omitempty"`
	// ExpectedSequence is the primary's configuration sequence number that the author saw;
	// 0 skips the check.
	ExpectedSequence int64 `json:"expectedSequence,omitempty"`
	// ResourceVersion of the resource that the author saw, for the record: the API server
	// itself refuses a patch that carries an older one.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// AllowDataLoss makes a failover forced; MaxLossSeconds bounds it when above zero.
	AllowDataLoss  bool `json:"allowDataLoss,omitempty"`
	MaxLossSeconds int  `json:"maxLossSeconds,omitempty"`
	// By, Reason and At are for the record.
	By     string       `json:"by,omitempty"`
	Reason string       `json:"reason,omitempty"`
	At     *metav1.Time `json:"at,omitempty"`
}

// ParseRequest reads the annotation; an empty text is no request.
func ParseRequest(text string) (*Request, error) {
	if text == "" {
		return nil, nil
	}
	var r Request
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("annotation %s is not a request document: %w", AnnotationRequest, err)
	}
	if r.ID == "" || r.Kind == "" {
		return nil, fmt.Errorf("annotation %s needs the fields id and kind", AnnotationRequest)
	}
	return &r, nil
}

// String is the annotation's text.
func (r Request) String() string {
	b, err := json.Marshal(r)
	if err != nil { // a struct of strings and numbers always marshals
		return ""
	}
	return string(b)
}

// FencedReplica is one entry of the annotation AnnotationFenced.
type FencedReplica struct {
	Replica string       `json:"replica"`
	By      string       `json:"by,omitempty"`
	Reason  string       `json:"reason,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
}

// ParseFenced reads the annotation; an empty text is an empty list.
func ParseFenced(text string) ([]FencedReplica, error) {
	if text == "" {
		return nil, nil
	}
	var f []FencedReplica
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("annotation %s is not a list of fenced replicas: %w", AnnotationFenced, err)
	}
	return f, nil
}

// PauseNote is the text of the annotation AnnotationPauseNote.
type PauseNote struct {
	By     string       `json:"by,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Since  *metav1.Time `json:"since,omitempty"`
}

// Paused tells whether the annotations of a resource stop reconciling, and what is known of
// who said so: a note that cannot be read is an empty one, since the pause counts without it.
func Paused(annotations map[string]string) (PauseNote, bool) {
	var n PauseNote
	if annotations[AnnotationPaused] != "true" {
		return n, false
	}
	if err := json.Unmarshal([]byte(annotations[AnnotationPauseNote]), &n); err != nil {
		return PauseNote{}, true
	}
	return n, true
}
