package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
)

// cniText is what a daemon knows of its CNI directories, for people.
func cniText(dirs []cni.View) string {
	var b strings.Builder
	table(&b, "STATE\tHANDLER\tDIRECTORY\tSINCE\tDEFAULT NETWORK\tFILES\tLAST GOOD SCAN\tREASON", len(dirs), func(i int) []string {
		v := dirs[i]
		last := "never"
		if !v.LastGoodScan.IsZero() {
			last = ago(v.GoodScanAge)
		}
		return []string{
			string(v.State), handlerCell(v), confDir(v), spanText(v.Time.Sub(v.Since)), cell(v.DefaultNetwork), strconv.Itoa(len(v.Files)), last,
			dash(scanner.Clean(cniReason(v), maxReason)),
		}
	})
	b.WriteByte('\n')
	cniTables(&b, dirs)
	cniSummary(&b, dirs)
	if asked := firstToAsk(dirs); asked != "" {
		fmt.Fprintf(&b, "plugpoll why %s tells what to do.\n", shellWord(asked))
	}
	return b.String()
}

// cniCheckText is what one look has shown of a directory.
func cniCheckText(v cni.View, asked bool) string {
	var b strings.Builder
	cniTables(&b, []cni.View{v})
	cniSummary(&b, []cni.View{v})
	if v.Ready {
		status := "the plugins were not asked for their STATUS (--status does)"
		if asked {
			status = "the plugins that can be asked for their STATUS say that they are ready"
		}
		form := "Ready: a pod gets %s; %s.\n"
		if len(noIPAM(v)) > 0 {
			form = "Ready, but a pod gets %s only if its IPAM plugin is found elsewhere; %s.\n"
		}
		fmt.Fprintf(&b, form, networksText(v), status)
	}
	return b.String()
}

// cniTables has the networks in use and the files.
func cniTables(b *strings.Builder, dirs []cni.View) {
	var networks, files [][]string
	for _, v := range dirs {
		for _, n := range v.Networks {
			var types, missing []string
			for _, p := range n.Plugins {
				types = append(types, p.Type)
				if p.Missing != "" {
					missing = append(missing, p.Type)
				}
				if p.IPAMMissing != "" && !slices.Contains(missing, p.IPAM) {
					missing = append(missing, p.IPAM)
				}
			}
			networks = append(networks, []string{
				networksAre(v), cell(n.Name), cell(n.Interface), cell(n.CNIVersion), cell(strings.Join(types, ",")), cell(strings.Join(missing, ",")), handlerCell(v), pathText(n.File, n.FileBase64),
			})
		}
		for _, f := range v.Files {
			files = append(files, []string{
				string(f.State), cell(f.Network), cell(f.CNIVersion), cell(strings.Join(f.Plugins, ",")), pathText(f.Path, f.PathBase64),
				dash(scanner.Clean(fileReason(f), maxReason)),
			})
		}
	}
	if len(networks) > 0 {
		table(b, "NETWORK IS\tNETWORK\tINTERFACE\tCNI VERSION\tPLUGINS\tMISSING\tHANDLER\tFILE", len(networks), func(i int) []string { return networks[i] })
		b.WriteByte('\n')
	}
	if len(files) > 0 {
		table(b, "FILE IS\tNETWORK\tCNI VERSION\tPLUGINS\tFILE\tWHY", len(files), func(i int) []string { return files[i] })
		b.WriteByte('\n')
	}
}

// cniSummary says of each file that has a mistake where it is and what to change, and then what needs attention.
func cniSummary(b *strings.Builder, dirs []cni.View) {
	for _, v := range dirs {
		for _, f := range v.Files {
			if f.Error != nil {
				fmt.Fprintln(b, confLine(*f.Error))
			}
		}
	}
	for _, v := range dirs {
		for _, t := range cniTroubles(v) {
			fmt.Fprintf(b, "Needs attention: %s %s.\n", confDir(v), strings.TrimSuffix(t, "."))
		}
	}
}

// cniTroubles says what of a directory needs attention, as the ends of sentences that begin with its path.
func cniTroubles(v cni.View) (all []string) {
	why := scanner.Clean(cniReason(v), maxComplaint)
	switch {
	case v.State == cni.Loading:
		all = append(all, "is not ready yet: "+why)
	case !v.Ready:
		all = append(all, "is not ready: "+why)
	case v.State == cni.Stale:
		all = append(all, "is stale, the last good configuration is in use: "+why)
	}
	if v.ScanError != "" && v.Ready {
		all = append(all, "cannot be read as a whole: "+scanner.Clean(v.ScanError, maxComplaint))
	}
	for _, n := range v.Networks {
		for _, why := range noIPAMOf(n) {
			all = append(all, "lacks what network "+cell(n.Name)+" takes addresses from: "+why)
		}
	}
	broken := 0
	for _, f := range v.Files {
		if f.State == cni.Broken && !sameFile(f, v.Error) {
			broken++
		}
	}
	switch {
	case broken > 0 && v.Error != nil: // some of them may count once the first is mended
		all = append(all, "has "+counted(broken, "more broken file", "more broken files"))
	case broken > 0:
		all = append(all, "has "+counted(broken, "broken file that is", "broken files that are")+" not needed now")
	}
	return all
}

// sameFile reports whether an error of a directory is about this file.
func sameFile(f cni.FileView, e *cni.ConfError) bool {
	return e != nil && (f.Path == e.Path || f.Error != nil && f.Error.Path == e.Path)
}

// cniReason is why a directory is not ready, or stale, in one line.
func cniReason(v cni.View) string {
	if v.Message != "" {
		return strings.TrimPrefix(v.Message, cni.MessagePrefix)
	}
	return v.LastError
}

// fileReason is why a file is not used, in few words.
func fileReason(f cni.FileView) string {
	if f.Error == nil || f.Reason != "" {
		return f.Reason
	}
	if f.Error.Line > 0 {
		return fmt.Sprintf("line %d, column %d: %s", f.Error.Line, f.Error.Column, f.Error.Kind)
	}
	return string(f.Error.Kind)
}

// confLine says of a mistake where it is, what is wrong and what to change, as compilers do.
func confLine(e cni.ConfError) string {
	return fmt.Sprintf("%s: %s; %s", mistakeAt(e), scanner.Clean(e.Text, maxComplaint), scanner.Clean(e.Fix, maxComplaint))
}

// mistakeAt is where a mistake is: FILE:LINE:COLUMN.
func mistakeAt(e cni.ConfError) string {
	at := pathText(e.Path, e.PathBase64)
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", at, e.Line, e.Column)
	}
	return at
}

func confDir(v cni.View) string { return pathText(v.ConfDir, v.ConfDirBase64) }

func handlerCell(v cni.View) string {
	if v.Name == "" {
		return "default"
	}
	return cell(v.Name)
}

// maxCell bounds what a file says of itself in a table.
const maxCell = 80

// cell is a text of a file in a table.
func cell(text string) string {
	if text == "" {
		return "-"
	}
	return scanner.Quote(scanner.Clean(text, maxCell))
}

func networksText(v cni.View) string {
	var names []string
	for _, n := range v.Networks {
		var types []string
		for _, p := range n.Plugins {
			types = append(types, cell(p.Type))
		}
		names = append(names, fmt.Sprintf("the network %s (%s) as %s", cell(n.Name), strings.Join(types, ", "), cell(n.Interface)))
	}
	return strings.Join(names, ", ")
}

// What is of the networks that a directory has loaded.
const (
	inUse  = "in use"
	loaded = "not ready"
	kept   = "kept for pods that run" // their files are gone
)

func networksAre(v cni.View) string {
	has := func(n cni.NetworkView) bool {
		return slices.ContainsFunc(v.Files, func(f cni.FileView) bool {
			return f.State == cni.Used && f.Path == n.File && f.PathBase64 == n.FileBase64
		})
	}
	switch {
	case v.Ready:
		return inUse
	case slices.ContainsFunc(v.Networks, has):
		return loaded
	}
	return kept
}

// firstToAsk is what to ask why for: of a directory that is not ready before that of one that works.
func firstToAsk(dirs []cni.View) string {
	var asked string
	for _, v := range dirs {
		if about := toAsk(v); !v.Ready {
			return about
		} else if asked == "" {
			asked = about
		}
	}
	return asked
}

// toAsk is what to ask why for of a directory: its file to mend, else the directory, and nothing if all is well.
func toAsk(v cni.View) string {
	if len(cniTroubles(v)) == 0 {
		return ""
	}
	broken := slices.IndexFunc(v.Files, func(f cni.FileView) bool { return f.State == cni.Broken })
	switch {
	case v.Error != nil && v.Error.Path != "":
		return rawPath(v.Error.Path, v.Error.PathBase64)
	case v.Ready && v.ScanError == "" && broken >= 0:
		return rawPath(v.Files[broken].Path, v.Files[broken].PathBase64)
	}
	return rawPath(v.ConfDir, v.ConfDirBase64)
}
