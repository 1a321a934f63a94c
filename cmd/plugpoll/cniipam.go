package main

import (
	"slices"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
)

// noIPAM is why the IPAM plugins of a directory's networks cannot be run, each once.
func noIPAM(v cni.View) (all []string) {
	for _, n := range v.Networks {
		all = append(all, noIPAMOf(n)...)
	}
	return all
}

func noIPAMOf(n cni.NetworkView) (all []string) {
	for _, p := range n.Plugins {
		if why := scanner.Clean(p.IPAMMissing, maxComplaint); why != "" && !slices.Contains(all, why) {
			all = append(all, why)
		}
	}
	return all
}
