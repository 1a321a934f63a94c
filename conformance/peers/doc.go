// Command peers holds plugpoll and the kubelet's plugin manager to the same rules, and measures both alike.
//
// It runs each of them in a process of its own, on a directory of the operating system, with plugins in other processes, and looks at what a handler and the
// plugins see of it. It prints two tables: the rules of docs/contract.md that can be seen from outside, with what each of them does, and the figures with
// their ratio. docs/peers.md has the last ones. What pictures need is kept in a file (package measured), from which the command in plots draws them.
//
// It is a module of its own, because it links k8s.io/kubernetes and with it fsnotify, which nothing else of ours may. It needs Linux.
package main
