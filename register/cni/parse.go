package cni

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/utils"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/plugpoll/plugpoll/scanner"
)

const (
	// maxText bounds what an error quotes from a file or a library, in bytes.
	maxText = 256
	// maxShown bounds one name of a file's in an error.
	maxShown = 64
	// maxName is the length of the longest file name: a plugin's type is one, and a network's name is a part of one, of libcni's results.
	maxName = 255
	// maxPlugins is how many plugins a network may have, with those from its subdirectory. Each is looked for, and is a process for each ADD and STATUS.
	maxPlugins = 64
)

// parse reads a file of the directory itself, and what its network takes from its subdirectory.
func (c *conf) parse(below map[string][]*conf) {
	c.err = c.problemError()
	if c.err == nil {
		c.err = c.at(textFault(c.content))
	}
	if c.err != nil {
		return
	}
	var list *libcni.NetworkConfigList
	if c.list() {
		list = c.parseList(below)
	} else {
		list = c.parseSingle()
	}
	if c.err != nil {
		return
	}
	c.check(list)
	c.note = c.twice()
}

func (c *conf) list() bool { return filepath.Ext(c.base) == ".conflist" }

// at makes an error of a fault in this file.
func (c *conf) at(f *fault) *ConfError {
	if f == nil {
		return nil
	}
	e := &ConfError{Path: c.path, PathBase64: scanner.Base64(c.path), Kind: f.kind, Text: f.text, Fix: f.fix}
	if f.at >= 0 {
		e.Line, e.Column = position(c.content, f.at)
	}
	return e
}

// problemError says what the scanner has against a file.
func (c *conf) problemError() *ConfError {
	detail := ""
	if c.detail != "" {
		detail = ": " + scanner.Clean(c.detail, maxText)
	}
	switch c.problem {
	case "":
		return nil
	case scanner.ProblemDangling:
		return c.at(&fault{-1, KindDangling, "the link leads to nothing" + detail, "make what it leads to, or remove the link"})
	case scanner.ProblemTooLarge:
		return c.at(&fault{-1, KindTooLarge, "the file is too large" + detail, "make it smaller, or give it another extension if it is no CNI configuration"})
	case scanner.ProblemNotRegular:
		return c.at(&fault{-1, KindNotRegular, "this is no regular file" + detail, "put a regular file in its place, or remove it"})
	case scanner.ProblemTooMany:
		return c.at(&fault{-1, KindTooMany, "there are too many files before it" + detail, "remove those that are not needed"})
	}
	return c.at(&fault{-1, KindUnreadable, "the file cannot be read" + detail, "let plugpoll's user read it"})
}

// parseSingle reads a .conf or a .json: one plugin.
func (c *conf) parseSingle() *libcni.NetworkConfigList {
	plugin, err := libcni.NetworkPluginConfFromBytes([]byte(c.content))
	if err != nil {
		c.err = c.at(c.explainPlugin(err))
		return nil
	}
	list, err := libcni.ConfListFromConf(plugin) //nolint:staticcheck // .conf files are there
	if err != nil {
		c.err = c.at(c.refused(err))
		return nil
	}
	return list
}

// parseList reads a .conflist, with the plugins from its subdirectory behind its own.
func (c *conf) parseList(below map[string][]*conf) *libcni.NetworkConfigList {
	list, err := libcni.NetworkConfFromBytes([]byte(c.content))
	if err != nil {
		c.err = c.at(c.explainList(err))
		return nil
	}
	if c.err = c.at(c.nameFault(list.Name)); c.err != nil {
		return nil
	}
	var more []*conf
	if !list.LoadOnlyInlinedPlugins {
		c.merges = true
		c.subdir = list.Name
		more = below[list.Name]
		c.taken = len(more)
	}
	if c.err = c.at(c.tooMuch(len(list.Plugins), more)); c.err != nil {
		return nil
	}
	if list = c.merge(list, more); list == nil {
		return nil
	}
	if len(list.Plugins) == 0 {
		c.err = c.at(c.noPlugins())
		return nil
	}
	return list
}

// tooMuch bounds a network as a whole: many files may have the name of one network, and each of them takes what is in its subdirectory.
func (c *conf) tooMuch(own int, files []*conf) *fault {
	size := len(c.content)
	for _, f := range files {
		size += len(f.content)
	}
	switch n := own + len(files); {
	case n > maxPlugins:
		return &fault{
			locate(c.content, "plugins"), KindManyPlugins,
			fmt.Sprintf("the network has %d plugins, and %d is the limit", n, maxPlugins), "use fewer",
		}
	case size > scanner.MaxFileSize:
		return &fault{
			-1, KindTooLarge, fmt.Sprintf("with what its subdirectory adds the network is too large: %.1f MiB, the limit is 1 MiB", float64(size)/(1<<20)), "make it smaller",
		}
	}
	return nil
}

// merge appends plugins from files to a list, in its Bytes as well: they are what go-cni is given.
func (c *conf) merge(list *libcni.NetworkConfigList, files []*conf) *libcni.NetworkConfigList {
	if len(files) == 0 {
		return list
	}
	var inline []json.RawMessage
	var all map[string]json.RawMessage
	err := json.Unmarshal(list.Bytes, &all)
	if own, ok := all["plugins"]; ok && err == nil {
		err = json.Unmarshal(own, &inline)
	}
	for _, f := range files {
		if f.parsePlugin(); f.err != nil && c.err == nil {
			c.err = f.err
		}
		inline = append(inline, json.RawMessage(f.content))
	}
	if c.err != nil {
		return nil
	}
	if err == nil {
		all["plugins"], err = json.Marshal(inline)
	}
	var merged []byte
	if err == nil {
		merged, err = json.Marshal(all)
	}
	if err == nil {
		list, err = libcni.NetworkConfFromBytes(merged)
	}
	if err != nil {
		c.err = c.at(c.refused(err))
		return nil
	}
	return list
}

// parsePlugin reads a file of a subdirectory: one plugin, whose network is the directory's.
func (c *conf) parsePlugin() {
	if c.network.plugins != nil || c.err != nil {
		return
	}
	if c.err = c.problemError(); c.err != nil {
		return
	}
	if c.err = c.at(textFault(c.content)); c.err != nil {
		return
	}
	plugin, err := libcni.NetworkPluginConfFromBytes([]byte(c.content))
	if err != nil {
		c.err = c.at(c.explainPlugin(err))
		return
	}
	if c.err = c.at(c.typeFault(plugin.Network.Type, anyCase("type"))); c.err == nil {
		c.err = c.at(c.numberFault()) // libcni finds it at the first ADD
	}
	if c.err == nil {
		c.network.plugins = []string{plugin.Network.Type}
	}
}

// check says what libcni accepts and no ADD would survive.
func (c *conf) check(list *libcni.NetworkConfigList) {
	n := network{name: list.Name, file: c.path, cniVersion: list.CNIVersion, list: list}
	if c.err = c.at(c.nameFault(list.Name)); c.err != nil {
		return
	}
	if c.err = c.at(c.versionFault(list.CNIVersion)); c.err != nil {
		return
	}
	for i, plugin := range list.Plugins {
		path := []any{"plugins", i, anyCase("type")}
		if !c.list() {
			path = path[2:]
		}
		if c.err = c.at(c.typeFault(plugin.Network.Type, path...)); c.err != nil {
			return
		}
		n.plugins, n.ipam = append(n.plugins, plugin.Network.Type), append(n.ipam, plugin.Network.IPAM.Type)
		plugin.Network.RawPrevResult = nil // nobody asks a configuration for it, and of a mebibyte it makes a hundred
	}
	c.network = n
}

// key is how this file's keys are looked up: libcni reads a .conf into a struct, and a .conflist into a map.
func (c *conf) key(name string) any {
	if c.list() {
		return name
	}
	return anyCase(name)
}

func (c *conf) nameFault(name string) *fault {
	const fix = "use letters, digits, _ . and -, beginning with a letter or a digit"
	if name != "" && len(name) <= maxName && utils.ValidateNetworkName(name) == nil {
		return nil
	}
	at := locate(c.content, c.key("name"))
	switch {
	case name == "":
		return &fault{at, KindNoName, "the network has no name", `add a "name"` + c.otherCase("name")}
	case len(name) > maxName:
		return &fault{at, KindBadName, fmt.Sprintf("the network's name has %d characters", len(name)), fmt.Sprintf("use at most %d", maxName)}
	case strings.ContainsAny(name, `/\`):
		return &fault{at, KindBadName, "the network's name " + shown(name) + " is a path", fix}
	}
	return &fault{at, KindBadName, "the network's name " + shown(name) + " has characters that CNI does not allow", fix}
}

// versionFault refuses what no plugin or not libcni can answer to: it would fail at the first ADD.
func (c *conf) versionFault(v string) *fault {
	known := version.All.SupportedVersions()
	if v == "" {
		return c.onlyNewer()
	}
	if slices.Contains(known, v) {
		return nil
	}
	at := locate(c.content, c.key("cniVersion"))
	fix := "use one of " + strings.Join(known, ", ")
	major, minor, micro, err := version.ParseVersion(v)
	if err != nil {
		return &fault{at, KindBadVersion, "cniVersion " + shown(v) + " is no version", fix}
	}
	if full := fmt.Sprintf("%d.%d.%d", major, minor, micro); slices.Contains(known, full) {
		return &fault{at, KindBadVersion, "cniVersion " + shown(v) + " is not written in full, and plugins compare it as text", "write " + full}
	}
	if newer, err := version.GreaterThan(v, version.Current()); err == nil && newer {
		return &fault{at, KindNewVersion, "cniVersion " + shown(v) + " is newer than " + version.Current() + ", the newest that is understood here", fix + `, or list older ones in "cniVersions"`}
	}
	return &fault{at, KindBadVersion, "there is no cniVersion " + shown(v), fix}
}

// onlyNewer is about a list whose cniVersions are all newer than libcni: it would go on with 0.1.0, which is none of them.
func (c *conf) onlyNewer() *fault {
	versions, _ := c.top()["cniVersions"].([]any)
	if !c.list() || len(versions) == 0 {
		return nil
	}
	for _, v := range versions {
		text, _ := v.(string)
		if newer, err := version.GreaterThan(text, version.Current()); err != nil || !newer {
			return nil
		}
	}
	return &fault{
		locate(c.content, "cniVersions"), KindNewVersion,
		"all cniVersions are newer than " + version.Current() + ", the newest that is understood here", "add an older one",
	}
}

const fixType = "write the name of the plugin's binary, without its directory"

func (c *conf) typeFault(typ string, path ...any) *fault {
	switch {
	case strings.ContainsFunc(typ, separator), typ == ".", typ == "..":
		return &fault{locate(c.content, path...), KindBadType, "the plugin's type " + shown(typ) + " is a path", fixType}
	case !fileName(typ) && typ != "":
		return &fault{locate(c.content, path...), KindBadType, "the plugin's type " + shown(typ) + " is no name of a file", fixType}
	}
	return nil
}

// fileName reports whether a type can be the name of a file.
func fileName(typ string) bool {
	unfit := func(r rune) bool { return separator(r) || !strconv.IsPrint(r) }
	return typ != "" && typ != "." && typ != ".." && len(typ) <= maxName && !strings.ContainsFunc(typ, unfit)
}

// shown quotes what comes from a file.
func shown(s string) string { return `"` + scanner.Clean(s, maxShown) + `"` }

// otherCase helps who wrote a key with a capital: libcni finds a list's keys only as they are.
func (c *conf) otherCase(name string) string {
	for _, k := range keys(c.content) {
		if k != name && strings.EqualFold(k, name) {
			return ": " + shown(k) + " is another key"
		}
	}
	return ""
}

// twice names a key of CNI's at the top that is there more than once.
func (c *conf) twice() string {
	seen := map[string]bool{}
	for _, k := range keys(c.content) {
		if seen[k] && slices.Contains([]string{"name", "type", "plugins", "cniVersion", "cniVersions", "ipam"}, k) {
			return k + " is there more than once; the last one counts"
		}
		seen[k] = true
	}
	return ""
}
