package main

import (
	"context"
	"encoding/json"
	"errors"
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

// cni is what the daemon knows of its CNI directories, and the JSON that it came as. There are none if it follows none, and no JSON if it is
// older than they are.
func (a *asker) cni(ctx context.Context) (cniAnswer, []byte, error) {
	content, err := a.raw(ctx, "/v1/cni")
	if _, older := errors.AsType[notThereError](err); older {
		return cniAnswer{}, nil, nil
	}
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
	if err == nil && content == nil {
		err = fmt.Errorf("the daemon at %s knows nothing of CNI directories, it is an older one: start it from this plugpoll with --cni-conf-dir, or look at a directory without it (plugpoll cni check DIR)",
			a.address)
	} else if err == nil && len(all.Directories) == 0 {
		err = fmt.Errorf("the daemon at %s follows no CNI directory: start it with --cni-conf-dir (plugpoll run --cni-conf-dir %s), or look at one without it (plugpoll cni check DIR)",
			a.address, cni.DefaultConfDir)
	}
	return all, content, err
}
