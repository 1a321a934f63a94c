package cni

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/scanner"
)

// Missing is a plugin that the networks need and that cannot be run (CN10).
type Missing struct {
	// Type is the plugin's, Networks are those that need it, in order.
	Type     string   `json:"type"`
	Networks []string `json:"networks"`
	// Dirs are the directories it was looked for in.
	Dirs []string `json:"dirs"`
	// Path is the file that is there and cannot be run. Empty: there is none.
	Path       string `json:"path,omitempty"`
	PathBase64 string `json:"path_base64,omitempty"`
	// Text says what is wrong, Fix what to do.
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

// Error returns one line.
func (m *Missing) Error() string {
	return "plugin " + shown(m.Type) + ": " + m.Text + "; " + m.Fix
}

// missing returns the plugins of networks, of any cniVersion, that cannot be run, sorted by the order in which they are needed. fsys is the operating
// system's if it is nil.
func missing(fsys afero.Fs, dirs []string, networks []network) (all []Missing) {
	if fsys == nil {
		fsys = afero.NewOsFs()
	}
	at := map[string]int{} // the index in all, or -1 for one that is there
	for _, n := range networks {
		for _, typ := range n.plugins {
			i, asked := at[typ]
			if !asked {
				i = -1
				if _, m := find(fsys, dirs, typ); m != nil {
					i = len(all)
					all = append(all, *m)
				}
				at[typ] = i
			}
			if i >= 0 && !slices.Contains(all[i].Networks, n.name) {
				all[i].Networks = append(all[i].Networks, n.name)
			}
		}
	}
	return all
}

// missingIPAM returns why the IPAM plugins of networks cannot be run, by type. They are not among the missing: some plugins have their own under a name that is
// no file, or look for it elsewhere.
func missingIPAM(fsys afero.Fs, dirs []string, networks []network) map[string]string {
	why := map[string]string{}
	for _, n := range networks {
		for _, typ := range n.ipam {
			if _, asked := why[typ]; asked || typ == "" {
				continue
			}
			why[typ] = ""
			if _, m := find(fsys, dirs, typ); m != nil {
				why[typ] = scanner.Clean("IPAM "+m.Error(), maxLine)
			}
		}
	}
	return why
}

// find looks for a plugin's binary as libcni does: the first regular file counts. It returns its path, or why it cannot be run.
func find(fsys afero.Fs, dirs []string, typ string) (string, *Missing) {
	m := &Missing{Type: typ, Dirs: slices.Clone(dirs), Networks: []string{}}
	if !fileName(typ) {
		m.Text, m.Fix = "it is no name of a file", fixType
		return "", m
	}
	if len(dirs) == 0 {
		m.Text, m.Fix = "there is no directory to look for it in", "configure one"
		return "", m
	}
	for _, dir := range dirs {
		for _, extension := range invoke.ExecutableFileExtensions {
			path := filepath.Join(dir, typ) + extension
			info, err := fsys.Stat(path)
			switch {
			case err == nil && info.Mode().IsRegular() && (executable(info.Mode()) || runtime.GOOS == "windows"):
				return path, nil
			case err == nil && info.Mode().IsRegular():
				m.Path, m.PathBase64 = path, scanner.Base64(path)
				m.Text, m.Fix = scanner.Quote(path)+" is not executable", "chmod +x it"
				return "", m
			case err == nil && m.Path == "":
				m.Path, m.PathBase64 = path, scanner.Base64(path)
				m.Text = scanner.Quote(path) + " is no regular file"
			case err != nil && !errors.Is(err, fs.ErrNotExist) && m.Text == "":
				m.Text = scanner.Clean(cause(err), maxText) + " at " + scanner.Quote(path)
			}
		}
	}
	if m.Text == "" {
		m.Text = "it is in none of " + quoted(dirs)
	}
	m.Fix = "install it in " + scanner.Quote(dirs[0])
	return "", m
}

// executable reports whether anybody may run a file of that mode.
func executable(mode fs.FileMode) bool { return mode&0o111 != 0 }

// cause is an error's text without the path, which is raw in it.
func cause(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

func quoted(paths []string) string {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = scanner.Quote(path)
	}
	return strings.Join(out, ", ")
}
