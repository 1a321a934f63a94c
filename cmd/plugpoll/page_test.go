package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/state"
)

// browser opens a page in a real Chromium.
func browser(t *testing.T, url string, width, height int64) context.Context {
	t.Helper()
	found := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			found = path
			break
		}
	}
	switch {
	case found != "" && os.Getenv("PLUGPOLL_NOINOTIFY") == "":
	case found == "" && os.Getenv("CI") != "" && os.Getenv("PLUGPOLL_NOINOTIFY") == "":
		t.Fatal("no Chromium is installed (Debian: apt-get install chromium)")
	default:
		t.Skip("no Chromium is installed (Debian: apt-get install chromium), or it cannot run here")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(found), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(int(width), int(height)))
	deadline, cancel := context.WithTimeout(context.Background(), 2*patience) //nolint:usetesting // the browser is closed in a cleanup
	ctx, endAllocator := chromedp.NewExecAllocator(deadline, options...)
	ctx, closeBrowser := chromedp.NewContext(ctx)
	t.Cleanup(func() { closeBrowser(); endAllocator(); cancel() })
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height), chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// sees waits until an expression of JavaScript is true.
func sees(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	var ok bool
	var err error
	if !poll(func() bool {
		ok, err = chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		return err != nil || ok
	}) || err != nil {
		text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
		t.Fatalf("the page does not come to %s: %v\n%s", expression, err, text)
	}
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// script runs JavaScript for its effect.
func script(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[bool]("(() => {"+text+"; return true })()")(ctx, target)
		return err
	})
}

// picture keeps a screenshot where PLUGPOLL_SCREENSHOTS says.
func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("PLUGPOLL_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

const rtl = "\u202e"

// TestPage reads the page in a browser: what it shows, that it follows what changes, and that what others name is text.
func TestPage(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	good, _ := n.plugin("a.sock", pluginOptions{})
	dead := n.dead("dead.sock")
	evil := n.dead("<img src=x onerror=document.title='evil'>" + "\x1b[31m" + rtl + "\n.sock")
	shout, _ := n.plugin("loud.sock", pluginOptions{typ: "<script>document.title='evil'</script>", name: "<b>bold</b>" + rtl + "x", versions: []string{"\"><i>1.0.0"}})
	bytes := n.dead("b\xff\xfe.sock")
	n.phase(good, state.Registered)
	n.phase(dead, state.Backoff)
	n.phase(evil, state.Backoff)
	n.phase(bytes, state.Backoff)
	n.phase(shout, state.Rejected)
	ctx := browser(t, n.url+"/", 1280, 800)
	sees(t, ctx, `document.querySelector("#live").textContent === "live"`)
	sees(t, ctx, `document.querySelectorAll("#sockets tbody tr").length === 5`)
	sees(t, ctx, `document.querySelector("#sockets").innerText.includes("demo.example.com")`)
	sees(t, ctx, `document.querySelector("#sockets").innerText.includes("connection refused")`)
	sees(t, ctx, `document.querySelector("#sockets").innerText.includes("recorded; the plugin's own API")`)
	sees(t, ctx, `/^in \d+ s|now$/.test([...document.querySelectorAll("[data-until]")].map(e => e.textContent)[0])`)
	sees(t, ctx, `/\d+ s ago/.test(document.querySelector("#roots").innerText)`)
	sees(t, ctx, `document.querySelector("#counts").textContent.includes("need attention")`)

	// Hostile names are text: no element was made of them, nothing ran, and nothing turns the text around.
	sees(t, ctx, `document.querySelector("#sockets").innerText.includes("<img src=x onerror=document.title='evil'>\\u{1b}[31m\\u{202e}\\u{a}.sock")`)
	sees(t, ctx, `document.querySelector("#sockets").innerText.includes("b\\xff\\xfe.sock")`)
	sees(t, ctx, `document.title === "plugpoll" && document.querySelectorAll("img, i, #sockets script, #events script, td b").length === 0`)
	sees(t, ctx, `!/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b]/.test(document.body.innerHTML)`)
	picture(t, ctx, "wide-light")

	// It follows.
	late, stop := n.plugin("late.sock", pluginOptions{name: "late.example.com"})
	sees(t, ctx, `[...document.querySelectorAll("#sockets tr")].some(e => e.innerText.includes("late.example.com") && e.innerText.includes("registered"))`)
	sees(t, ctx, `[...document.querySelectorAll("#events li")].some(e => e.innerText.includes("registered") && e.innerText.includes("late.example.com"))`)
	stop()
	sees(t, ctx, `![...document.querySelectorAll("#sockets tr")].some(e => e.innerText.includes("late.example.com"))`)
	sees(t, ctx, `[...document.querySelectorAll("#events li")].some(e => e.innerText.includes("deregistered") && e.innerText.includes("`+filepath.Base(late)+`"))`)

	// Search and filters.
	do(t, ctx, chromedp.SendKeys("#search", "refused dead"))
	shown := `[...document.querySelectorAll("#sockets tbody tr")].filter(e => e.offsetParent !== null).length`
	sees(t, ctx, shown+` === 1`)
	do(t, ctx, script(`document.querySelector("#search").value = ""; document.querySelector("#search").dispatchEvent(new Event("input"))`))
	choose := func(id, value string) {
		do(t, ctx, script(`document.querySelector("`+id+`").value = "`+value+`"; document.querySelector("`+id+`").dispatchEvent(new Event("change"))`))
	}
	choose("#phase", "registered")
	sees(t, ctx, shown+` === 1`)
	choose("#phase", "!")
	sees(t, ctx, shown+` === 4`)
	choose("#type", "CSIPlugin")
	sees(t, ctx, shown+` === 0 && !document.querySelector("#none").hidden`)
	choose("#type", "")
	choose("#phase", "")

	// Dark, and on a phone: nothing is wider than the screen.
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, dark); err != nil {
		t.Fatal(err)
	}
	sees(t, ctx, `matchMedia("(prefers-color-scheme: dark)").matches`)
	picture(t, ctx, "wide-dark")
	do(t, ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	sees(t, ctx, `document.documentElement.scrollWidth <= 390`)
	picture(t, ctx, "phone-dark")
}

// TestPageLosesDaemon says that what it shows is old, and comes back by itself.
func TestPageLosesDaemon(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	ctx := browser(t, n.url+"/", 800, 600)
	sees(t, ctx, `document.querySelector("#live").textContent === "live"`)
	n.site.feed.mu.Lock() // the streams end, as when the daemon does
	n.site.feed.ended = true
	close(n.site.feed.wake)
	n.site.feed.wake = make(chan struct{})
	n.site.feed.mu.Unlock()
	sees(t, ctx, `document.querySelector("#live").textContent.includes("does not answer")`)
	n.site.feed.mu.Lock()
	n.site.feed.ended = false
	n.site.feed.mu.Unlock()
	sees(t, ctx, `document.querySelector("#live").textContent === "live"`)
}

// TestPageWithoutEvents has so many read the events that the page gets none: it says so, and shows what is new all the same.
func TestPageWithoutEvents(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	for range maxReaders {
		n.site.readers <- struct{}{}
	}
	ctx := browser(t, n.url+"/", 800, 600)
	sees(t, ctx, `document.querySelector("#live").textContent.startsWith("no live events")`)
	n.dead("dead.sock")
	sees(t, ctx, `document.querySelector("#sockets").innerText.includes("connection refused")`)
	for range maxReaders {
		<-n.site.readers
	}
	sees(t, ctx, `document.querySelector("#live").textContent === "live"`)
}

// TestPageOfMany shows a thousand sockets, and takes a new View of them, without keeping who looks waiting.
func TestPageOfMany(t *testing.T) {
	v := state.View{Version: "v1", Time: time.Now(), Synced: true, Roots: []state.RootView{{Path: "/r", LastScan: time.Now(), LastGoodScan: time.Now()}}}
	for i := range 1000 {
		v.Sockets = append(v.Sockets, state.SocketView{
			Path: fmt.Sprintf("/r/%04d.sock", i), Root: "/r", Phase: state.Registered, Found: v.Time, Since: v.Time,
			Plugin: &state.Plugin{Type: "CSIPlugin", Name: fmt.Sprintf("p%d.example.com", i), Versions: []string{"1.0.0"}},
		})
	}
	s := newSite(fixed{v}, 0, nil)
	server := httptest.NewServer(s.status(address{"tcp", "127.0.0.1:0"}))
	defer server.CloseClientConnections()
	ctx := browser(t, server.URL+"/", 1280, 800)
	sees(t, ctx, `document.querySelectorAll("#sockets tbody tr").length === 1000`)
	for _, what := range []struct{ name, do string }{
		{"a search", `const s = document.querySelector("#search"); s.value = "p999"; s.dispatchEvent(new Event("input")); document.body.offsetHeight`},
		{"a change of the filter", `const p = document.querySelector("#phase"); p.value = "!"; p.dispatchEvent(new Event("change")); document.body.offsetHeight`},
	} {
		took, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`(() => { const t = performance.now(); `+what.do+`; return performance.now() - t })()`))
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s took %.0f ms", what.name, took); took > 1000 {
			t.Errorf("%s took %.0f ms", what.name, took)
		}
	}
}

// TestPageIsOurs keeps the page free of what comes from elsewhere, and of ways to make HTML of a text.
func TestPageIsOurs(t *testing.T) {
	for _, name := range []string{"index.html", "page.js", "page.css"} {
		content, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, banned := range []string{"http:", "https:", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "@import", "style=", "onclick"} {
			if strings.Contains(string(content), banned) {
				t.Errorf("%s has %q", name, banned)
			}
		}
	}
}
