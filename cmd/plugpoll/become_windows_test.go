package main

import "os/exec"

func become(*exec.Cmd, uint32) {}
