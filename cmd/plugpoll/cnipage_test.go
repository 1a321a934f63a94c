package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/cni"
)

// TestPageCNI reads the section of the CNI directories in a browser: a verdict on each file, what to change, and that it follows; what files are called and say is text.
func TestPageCNI(t *testing.T) {
	const evil = "<img src=x onerror=document.title='evil'>" + "\x1b[31m" + rtl
	f := newFake(nil)
	kata := newFake(func(v *cni.View) {
		isStaleNow(v)
		v.Name, v.ConfDir = "kata"+evil, "/etc/cni/kata.d"
		v.LastError = "it cannot be used: " + evil
		v.Networks[0].Name = evil
		v.Networks[0].Plugins[1].Missing = "plugin portmap: it is in none of /opt/cni/bin" + evil
		v.Files = []cni.FileView{
			{Path: "/etc/cni/kata.d/10-" + evil + ".conf", State: cni.Broken, Error: &cni.ConfError{Path: "x", Line: 4, Column: 27, Kind: cni.KindTrailingComma, Text: "there is a comma before " + evil, Fix: "remove the comma" + evil}},
			{Path: "/etc/cni/kata.d/b\ufffd.conf", PathBase64: "L2V0Yy9jbmkva2F0YS5kL2L/LmNvbmY=", State: cni.NotUsed, Reason: "10-a.conf comes first" + evil, Network: evil, CNIVersion: evil, Plugins: []string{evil}},
			{Path: "/etc/cni/kata.d/30-c.conf", State: cni.Duplicate, Reason: "has this network already", Network: strings.Repeat("x", 5000)},
		}
	})
	n := follow(t, f, kata)
	ctx := browser(t, n.url+"/", 1280, 800)
	sees(t, ctx, `document.querySelector("#live").textContent === "live"`)
	sees(t, ctx, `!document.querySelector("#cni").hidden && document.querySelectorAll("#networks .cni").length === 2`)
	sees(t, ctx, `/^ready\/etc\/cni\/net\.d$/.test(document.querySelector("#networks h3").textContent)`)
	sees(t, ctx, `document.querySelector("#networks").innerText.includes("In use: mynet as eth0, plugins bridge, portmap")`)
	sees(t, ctx, `[...document.querySelectorAll("#networks tbody tr")].length === 4`)
	second := `document.querySelectorAll("#networks .cni")[1]`
	sees(t, ctx, second+`.querySelector("h3").textContent.startsWith("stale/etc/cni/kata.d of the runtime handler kata")`)
	sees(t, ctx, second+`.innerText.includes("line 4, column 27: there is a comma before") && `+second+`.innerText.includes("To mend it: remove the comma")`)
	sees(t, ctx, second+`.innerText.includes("b\\xff.conf")`)
	sees(t, ctx, `!document.querySelector("#networks").innerText.includes("x".repeat(81)) && document.querySelector("#sockets").offsetParent === null`)
	sees(t, ctx, second+`.innerText.includes("plugin portmap: it is in none of /opt/cni/bin")`)
	sees(t, ctx, `document.querySelector("#counts").textContent.includes("1 needs attention")`)

	// Hostile names are text: no element was made of them, nothing ran, and nothing turns the text around.
	sees(t, ctx, second+`.innerText.includes("10-<img src=x onerror=document.title='evil'>\\u{1b}[31m\\u{202e}.conf")`)
	sees(t, ctx, `document.title === "plugpoll" && document.querySelectorAll("img, #networks script, #events script").length === 0`)
	sees(t, ctx, `!/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b]/.test(document.body.innerHTML)`)
	picture(t, ctx, "cni-light")

	// An IPAM plugin that is missing needs attention, once the network is ready too.
	f.change(cni.EventApplied, hasNoIPAM)
	sees(t, ctx, `document.querySelector("#networks .cni").innerText.includes('IPAM plugin "host-local": it is in none of /opt/cni/bin')`)
	sees(t, ctx, `document.querySelector("#counts").textContent.includes("2 need attention")`)

	// It follows.
	f.change(cni.EventNotReady, func(v *cni.View) {
		isDown(v)
		v.Files, v.Networks, v.LastError = []cni.FileView{}, []cni.NetworkView{}, "there is nothing"
	})
	sees(t, ctx, `document.querySelector("#networks .cni").innerText.includes("Network plugin returns error: there is nothing")`)
	f.change(cni.EventNotReady, func(v *cni.View) { v.Networks = newFake(nil).view.Networks })
	sees(t, ctx, `document.querySelector("#networks .cni").innerText.includes("Kept for pods that run: mynet as eth0")`)
	f.change(cni.EventNotReady, func(v *cni.View) { v.Files = newFake(nil).view.Files })
	sees(t, ctx, `document.querySelector("#networks .cni").innerText.includes("Loaded: mynet as eth0")`)
	f.change(cni.EventNotReady, func(v *cni.View) { v.Files = []cni.FileView{} })
	sees(t, ctx, `document.querySelector("#networks h3 b").className === "phase bad" && document.querySelector("#networks .cni").querySelector("table") === null`)
	sees(t, ctx, `[...document.querySelectorAll("#events li")].some(e => e.innerText.includes("cni not ready") && e.innerText.includes("/etc/cni/net.d") && e.querySelector("b.bad"))`)
	sees(t, ctx, `document.querySelector("#counts").textContent.includes("2 need attention")`)
	do(t, ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	sees(t, ctx, `document.documentElement.scrollWidth <= 390`)
	picture(t, ctx, "cni-phone")
}

// TestPageWithoutCNI has no such section.
func TestPageWithoutCNI(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	ctx := browser(t, n.url+"/", 800, 600)
	sees(t, ctx, `document.querySelector("#live").textContent === "live"`)
	sees(t, ctx, `/\d+ s ago/.test(document.querySelector("#roots").innerText)`)
	sees(t, ctx, `document.querySelector("#cni").hidden && document.querySelector("#cni").offsetParent === null && document.querySelector("#sockets").offsetParent !== null`)
}
