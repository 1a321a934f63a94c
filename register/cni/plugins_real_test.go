//go:build linux

package cni

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gocni "github.com/containerd/go-cni"
	"golang.org/x/sys/unix"
)

// debianPlugins is where Debian's containernetworking-plugins are.
const debianPlugins = "/usr/lib/cni"

// CN6, CN7, CN8: the plugins that nodes run, bridge with host-local and portmap, and loopback, give pods their network, through a configuration that is broken, repaired, given
// another name and removed. It happens in a process of its own, whose network and mounts are nobody else's: nothing of the machine changes.
func TestPlugins(t *testing.T) {
	if os.Getenv("PLUGPOLL_NODE") != "" {
		runNode(t)
		return
	}
	t.Parallel()
	if os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		t.Skip("iptables wants the real root, which is not that of the user namespace of noinotify.sh")
	}
	if os.Geteuid() != 0 {
		lacking(t, "only root can make network namespaces")
	}
	for _, plugin := range []string{"bridge", "host-local", "loopback", "portmap"} {
		if _, err := os.Stat(filepath.Join(debianPlugins, plugin)); err != nil {
			lacking(t, fmt.Sprintf("%v: install containernetworking-plugins", err))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPlugins$", "-test.v")
	cmd.Env = append(os.Environ(), "PLUGPOLL_NODE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case err != nil:
		t.Fatalf("%v\n%s", err, text)
	case strings.Contains(text, "--- SKIP"):
		t.Skip(text)
	case !strings.Contains(text, "--- PASS: TestPlugins"):
		t.Fatalf("it did not run:\n%s", text)
	}
}

// node is the process in which it happens.
type node struct {
	*real
	// plain is a second Syncer on the directory, without the loopback: go-cni's own is of cniVersion 0.3.1, which has no CHECK.
	plain *Syncer
	pods  int
}

func runNode(t *testing.T) {
	for _, dir := range []string{"/var/lib", "/run"} { // leases and results of libcni, and the lock of iptables
		if err := unix.Mount("plugpoll", dir, "tmpfs", 0, "mode=755"); err != nil {
			lacking(t, fmt.Sprintf("no tmpfs at %s: %v", dir, err))
		}
	}
	setLoopbackUp(t)
	n := &node{real: &real{T: t, conf: filepath.Join(t.TempDir(), "net.d"), at: debianPlugins, log: &output{}}}
	n.must(os.Mkdir(n.conf, 0o755))
	n.begin(Config{})
	n.plain = n.s
	n.begin(Config{Loopback: true})
	n.waits("no configuration", func(v View) bool { return v.State == NotReady })

	n.write("10-net.conflist", bridged("first", 88))
	n.waitsFor(Ready, "first")
	for _, p := range n.s.View().Networks[0].Plugins {
		if p.Path != filepath.Join(debianPlugins, p.Type) {
			t.Errorf("plugin %s is %q", p.Type, p.Path)
		}
	}
	first := n.setup("10.88.0.", 8080)
	n.reaches(first, "10.88.0.1")
	// Without a port: portmap 1.1.1 looks for rules for IPv6 as well, where there are none.
	second := n.setup("10.88.0.", 0)
	n.must(n.check(n.plain, second))
	if err := n.check(n.s, second); err == nil || !strings.Contains(err.Error(), "does not support the CHECK command") {
		t.Errorf("docs/cni.md says that CHECK fails with go-cni's loopback: %v", err)
	}

	n.write("10-net.conflist", bridged("first", 88)[:60])
	n.waitsFor(Stale, "first")
	n.must(n.check(n.plain, second))
	n.tearDown(n.s.CNI(), first)
	third := n.setup("10.88.0.", 8081) // the last good configuration sets pods up as well
	before := n.s.CNI()

	n.write("10-net.conflist", bridged("other", 89))
	n.waitsFor(Ready, "other")
	fourth := n.setup("10.89.0.", 8082)
	n.tearDown(before, second) // by the instance that set it up
	n.leases("first", third)
	// The instance of today does not know the network of before: Remove fails, and the lease stays. The instance that set the pod up can still do it. This is go-cni's, and
	// docs/cni.md tells of it.
	if err := n.s.CNI().Remove(t.Context(), third.id, third.netns, third.options...); err == nil {
		t.Error("a pod in a network of another name is removed")
	}
	n.leases("first", third)
	n.tearDown(before, third)
	n.leases("first")

	n.must(os.Remove(filepath.Join(n.conf, "10-net.conflist")))
	n.waits("no configuration", func(v View) bool { return v.State == NotReady })
	n.tearDown(n.s.CNI(), fourth)
	n.leases("other")
}

// bridged is a bridge of its own with addresses 10.SUBNET.0.0/24, and ports of the node.
func bridged(name string, subnet int) string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": %q,
  "plugins": [
    {"type": "bridge", "bridge": "br%d", "isGateway": true, "ipMasq": true,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.%d.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, name, subnet, subnet)
}

// pod is a network namespace with nothing in it but what the plugins put there.
type pod struct {
	id, netns, address string
	port               int32 // of the node; 0: none
	options            []gocni.NamespaceOpts
}

// setup makes a pod and gives it its network, which must be eth0 with an address that begins as given, and a loopback that is up.
func (n *node) setup(prefix string, port int32) *pod {
	n.Helper()
	n.pods++
	p := &pod{id: fmt.Sprintf("pod%d", n.pods), netns: fmt.Sprintf("/run/pod%d", n.pods), port: port}
	if port != 0 {
		p.options = append(p.options, gocni.WithCapabilityPortMap([]gocni.PortMapping{{HostPort: port, ContainerPort: 80, Protocol: "tcp"}}))
	}
	n.must(os.WriteFile(p.netns, nil, 0o644))
	n.apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), p.netns, "", unix.MS_BIND, "")
	})
	result, err := n.s.CNI().Setup(n.Context(), p.id, p.netns, p.options...)
	n.must(err)
	eth0 := result.Interfaces["eth0"]
	if eth0 == nil || len(eth0.IPConfigs) != 1 || !strings.HasPrefix(eth0.IPConfigs[0].IP.String(), prefix) {
		n.Fatalf("%s has interfaces %+v, and eth0 %+v", p.id, result.Interfaces, eth0)
	}
	p.address = eth0.IPConfigs[0].IP.String()
	n.interfaces(p, "lo", "eth0 "+p.address+"/24")
	return p
}

func (n *node) check(s *Syncer, p *pod) error {
	return s.CNI().Check(n.Context(), p.id, p.netns, p.options...)
}

// tearDown takes a pod's network away, with its address.
func (n *node) tearDown(by gocni.CNI, p *pod) {
	n.Helper()
	n.must(by.Remove(n.Context(), p.id, p.netns, p.options...))
	n.interfaces(p, "lo")
	for _, network := range []string{"first", "other"} {
		if _, err := os.Stat(filepath.Join("/var/lib/cni/networks", network, p.address)); err == nil {
			n.Errorf("the lease of %s in %s is still there", p.address, network)
		}
	}
}

// leases checks whose addresses a network has given out.
func (n *node) leases(network string, pods ...*pod) {
	n.Helper()
	files, err := filepath.Glob(filepath.Join("/var/lib/cni/networks", network, "10.*"))
	n.must(err)
	var want []string
	for _, p := range pods {
		want = append(want, filepath.Join("/var/lib/cni/networks", network, p.address))
	}
	if !slices.Equal(files, want) {
		n.Errorf("the leases of %s are %q, want %q", network, files, want)
	}
}

// interfaces checks what a pod has: each interface, with its IPv4 address unless it is lo, which is up as long as there is an eth0.
func (n *node) interfaces(p *pod, want ...string) {
	n.Helper()
	var got []string
	n.in(p, func() error {
		all, err := net.Interfaces()
		for _, i := range all {
			switch {
			case i.Name == "lo" && (i.Flags&net.FlagUp != 0) == (len(all) > 1):
				got = append(got, "lo")
			case i.Name == "lo":
				got = append(got, "lo "+i.Flags.String())
			default:
				addresses, err := i.Addrs()
				if err != nil || len(addresses) == 0 {
					return fmt.Errorf("%s has the addresses %v, %w", i.Name, addresses, err)
				}
				got = append(got, i.Name+" "+addresses[0].String())
			}
		}
		return err
	})
	if !slices.Equal(got, want) {
		n.Errorf("%s has %q, want %q", p.id, got, want)
	}
}

// reaches checks that a connection to the pod's port of the node gets to the pod.
func (n *node) reaches(p *pod, address string) {
	n.Helper()
	var listener net.Listener
	n.in(p, func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(n.Context(), "tcp4", ":80")
		return err
	})
	go func() {
		for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
			_, _ = io.WriteString(c, p.id)
			_ = c.Close()
		}
	}()
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithTimeout(n.Context(), 10*time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp4", fmt.Sprintf("%s:%d", address, p.port))
	n.must(err)
	defer func() { _ = c.Close() }()
	if said, err := io.ReadAll(c); err != nil || string(said) != p.id {
		n.Errorf("port %d of the node says %q, %v", p.port, said, err)
	}
}

// in does something in a pod's network namespace.
func (n *node) in(p *pod, do func() error) {
	n.Helper()
	n.apart(func() error {
		f, err := os.Open(p.netns)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return do()
	})
}

// apart does something in a thread that ends with it.
func (n *node) apart(do func() error) {
	n.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- do()
	}()
	n.must(<-done)
}

// setLoopbackUp makes the node reach itself.
func setLoopbackUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		lo.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		t.Fatal(err)
	}
}
