package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/plugpoll/plugpoll/scanner"
)

// refused says why libcni does not take what it has read, and passes on what it says where nothing better is known.
func (c *conf) refused(err error) *fault {
	if f := c.numberFault(); f != nil {
		return f
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok && strings.Contains(e.Error(), maxDepth) {
		return tooDeep(-1) // not in the file, but in the list that libcni makes of it
	}
	text := strings.TrimPrefix(err.Error(), "error parsing configuration list: ")
	return &fault{-1, KindRefused, "libcni refuses it: " + scanner.Clean(text, maxText), "correct it"}
}

// explainPlugin says why libcni does not take a file as one plugin.
func (c *conf) explainPlugin(err error) *fault {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return c.wrongType(e, nil)
	}
	if _, ok := c.top()["plugins"]; ok {
		fix := "rename it to " + scanner.Quote(strings.TrimSuffix(c.base, filepath.Ext(c.base))+".conflist")
		if c.dir != "" {
			fix = "put each plugin in a file of its own"
		}
		return &fault{locate(c.content, "plugins"), KindListInConf, "this is a list of plugins, and a " + filepath.Ext(c.base) + " file holds one plugin", fix}
	}
	return &fault{locate(c.content, anyCase("type")), KindNoType, "the plugin has no type", `add a "type", the name of the plugin's binary`}
}

// numberFault finds a number that libcni cannot hold, or nil.
func (c *conf) numberFault() *fault {
	var all any
	e, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal([]byte(c.content), &all))
	if !ok {
		return nil
	}
	at := min(int(e.Offset), len(c.content)) // behind it, or behind the character that ends it
	number := func() bool { return strings.IndexByte("+-.0123456789Ee", c.content[at-1]) >= 0 }
	if at > 0 && !number() {
		at--
	}
	for at > 0 && number() {
		at--
	}
	return &fault{at, KindNumber, "the " + scanner.Clean(e.Value, maxShown) + " is too large", "make it smaller"}
}

// top is the object, as libcni reads a list. Of one with a number that it cannot hold it is a part.
func (c *conf) top() (top map[string]any) {
	_ = json.Unmarshal([]byte(c.content), &top) // textFault has seen that it is one
	return top
}

// explainList says why libcni does not take a file as a list. It goes by the values in the order that libcni does.
func (c *conf) explainList(err error) *fault {
	if f := c.numberFault(); f != nil {
		return f
	}
	top := c.top()
	name, ok := top["name"]
	if !ok {
		return c.nameFault("")
	}
	if _, ok := name.(string); !ok {
		return c.valueFault(KindWrongType, "name", "a string")
	}
	if v, ok := top["cniVersion"]; ok {
		if _, ok := v.(string); !ok {
			return c.valueFault(KindWrongType, "cniVersion", `a string, as "`+version.Current()+`"`)
		}
	}
	if f := c.explainVersions(top); f != nil {
		return f
	}
	for _, key := range []string{"disableCheck", "disableGC", "loadOnlyInlinedPlugins"} {
		if f := c.explainBool(key, top); f != nil {
			return f
		}
	}
	plugins, ok := top["plugins"]
	if !ok {
		return &fault{locate(c.content, "loadOnlyInlinedPlugins"), KindNoPlugins, "loadOnlyInlinedPlugins is true, and there are no plugins", `add "plugins"` + c.otherCase("plugins")}
	}
	list, ok := plugins.([]any)
	if !ok {
		return c.valueFault(KindPluginsNotList, "plugins", "an array, also of one plugin")
	}
	if len(list) == 0 {
		return c.noPlugins()
	}
	for i, p := range list {
		if f := c.explainElement(i, p); f != nil {
			return f
		}
	}
	return c.refused(err)
}

func (c *conf) explainVersions(top map[string]any) *fault {
	value, ok := top["cniVersions"]
	if !ok {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		return c.valueFault(KindWrongType, "cniVersions", "an array of strings")
	}
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return &fault{locate(c.content, "cniVersions", i), KindWrongType, fmt.Sprintf("element %d of cniVersions is not a string", i+1), "put it in quotes"}
		}
		if _, _, _, err := version.ParseVersion(text); err != nil {
			return &fault{locate(c.content, "cniVersions", i), KindBadVersion, shown(text) + " in cniVersions is no version", "write it as " + version.Current()}
		}
	}
	if text, _ := top["cniVersion"].(string); text != "" {
		if _, _, _, err := version.ParseVersion(text); err != nil {
			return c.versionFault(text)
		}
	}
	return nil
}

func (c *conf) explainBool(key string, top map[string]any) *fault {
	switch v := top[key].(type) {
	case bool:
		return nil
	case string:
		if strings.EqualFold(v, "true") || strings.EqualFold(v, "false") {
			return nil
		}
	case nil:
		if _, ok := top[key]; !ok {
			return nil
		}
	}
	return c.valueFault(KindWrongType, key, "true or false")
}

// explainElement has libcni look at one plugin of a list.
func (c *conf) explainElement(i int, plugin any) *fault {
	content, err := json.Marshal(plugin)
	if err == nil {
		_, err = libcni.NetworkPluginConfFromBytes(content)
	}
	if err == nil {
		return nil
	}
	if _, ok := plugin.(map[string]any); !ok {
		return &fault{
			locate(c.content, "plugins", i), KindWrongType, fmt.Sprintf("plugin %d is %s, and a plugin is an object", i+1, nameOf(string(content))),
			`write it as {"type": …}`,
		}
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return c.wrongType(e, []any{"plugins", i})
	}
	return &fault{locate(c.content, "plugins", i), KindNoType, fmt.Sprintf("plugin %d has no type", i+1), `add a "type", the name of the plugin's binary`}
}

// wrongType says which field of a plugin, at that path, has a value that does not fit. Offsets count in what libcni was given, which for a list is
// not the file: only the names help.
func (c *conf) wrongType(e *json.UnmarshalTypeError, path []any) *fault {
	for name := range strings.SplitSeq(e.Field, ".") {
		path = append(path, anyCase(name))
	}
	want := map[string]string{"string": "a string", "bool": "true or false", "[]string": "an array of strings"}[e.Type.String()]
	if want == "" {
		want = "an object"
	}
	return &fault{
		locate(c.content, path...), KindWrongType,
		shown(e.Field) + " has " + scanner.Clean(article(e.Value), maxShown) + ", and " + want + " belongs there", "make it " + want,
	}
}

// article makes a sentence of the names that encoding/json has for kinds of values.
func article(value string) string {
	switch value {
	case "bool":
		return "true or false"
	case "array", "object":
		return "an " + value
	}
	return "a " + value
}

// valueFault is about a key at the top of a list whose value does not fit.
func (c *conf) valueFault(kind Kind, key, want string) *fault {
	at := locate(c.content, key)
	var top map[string]json.RawMessage
	_ = json.Unmarshal([]byte(c.content), &top) // textFault has seen that it is one
	value := string(top[key])
	is := nameOf(value)
	if value != "" && value[0] == '"' {
		is = scanner.Clean(value, maxShown)
	}
	return &fault{at, kind, key + " is " + is, "make it " + want}
}

// noPlugins is about a list without plugins, neither in it nor in a subdirectory.
func (c *conf) noPlugins() *fault {
	top := c.top()
	if _, ok := top["plugins"]; ok {
		return &fault{locate(c.content, "plugins"), KindNoPlugins, "the list of plugins is empty", "add a plugin"}
	}
	if _, ok := top["type"]; ok {
		return &fault{
			locate(c.content, "type"), KindPluginInList, "this is one plugin, and a .conflist file holds a list of plugins",
			"rename it to " + scanner.Quote(strings.TrimSuffix(c.base, filepath.Ext(c.base))+".conf") + `, or put the plugin in "plugins": [ ]`,
		}
	}
	return &fault{locate(c.content), KindNoPlugins, "there are no plugins", `add "plugins"` + c.otherCase("plugins")}
}
