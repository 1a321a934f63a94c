//go:build !linux

package main

func openDir(dir string) (string, func(), error) { return plainDir(dir) }

func hold(path string, follow bool) (*held, error) { return plainHold(path, follow) }

func moveNew(from, to string) error { return linkNew(from, to) }
