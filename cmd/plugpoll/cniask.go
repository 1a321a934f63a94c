package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/plugpoll/plugpoll/register/cni"
)

// cniAnswer is the answer to /v1/cni.
type cniAnswer struct {
	Version     string     `json:"version"`
	Time        time.Time  `json:"time"`
	Directories []cni.View `json:"directories"`
}

// cni is what the daemon knows of its CNI directories, none if it follows none, and the JSON that it came as.
func (a *asker) cni(ctx context.Context) (cniAnswer, []byte, error) {
	content, err := a.raw(ctx, "/v1/cni")
	if err != nil {
		return cniAnswer{}, nil, err
	}
	var all cniAnswer
	if err := json.Unmarshal(content, &all); err != nil {
		return cniAnswer{}, nil, fmt.Errorf("the daemon at %s: %w", a.address, err)
	}
	return all, content, nil
}

// someCNI is cni, with an error if the daemon follows no directory.
func (a *asker) someCNI(ctx context.Context) (cniAnswer, []byte, error) {
	all, content, err := a.cni(ctx)
	if err == nil && len(all.Directories) == 0 {
		err = fmt.Errorf("the daemon at %s follows no CNI directory: start it with --cni-conf-dir (plugpoll run --cni-conf-dir %s), or look at one without it (plugpoll cni check DIR)",
			a.address, cni.DefaultConfDir)
	}
	return all, content, err
}
