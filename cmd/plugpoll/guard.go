package main

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/plugpoll/plugpoll/scanner"
)

// policy allows the page its own files and the calls of its own server. Trusted types take from it even the means to make HTML of a text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// readOnly refuses what is not a question, and has browsers keep what is answered to themselves (X2).
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			fail(w, http.StatusMethodNotAllowed, "nothing can be changed here: use GET")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guard is readOnly for what has names in it. A page from elsewhere must not read it by a name that its owner made lead here (DNS rebinding), nor ask for it.
func guard(next http.Handler, a address) http.Handler {
	return readOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !ownHost(a, r.Host):
			fail(w, http.StatusMisdirectedRequest, "the request is for the host "+scanner.Quote(scanner.Clean(r.Host, 256))+
				", which anybody may have made lead here: ask by the address, or as localhost")
		case foreign(r):
			fail(w, http.StatusForbidden, "a page of another site has asked for this")
		default:
			next.ServeHTTP(w, r)
		}
	}))
}

// ownHost reports whether a Host header can be meant for us: a numeric address cannot be made to lead elsewhere, and a name must be the one that we were
// told to listen at. A unix socket is out of a page's reach.
func ownHost(a address, host string) bool {
	if a.network == "unix" {
		return true
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if _, err := netip.ParseAddr(host); err == nil || loopback(host) {
		return true
	}
	own, _, _ := net.SplitHostPort(a.at)
	return own != "" && strings.EqualFold(host, own)
}

// foreign reports whether a browser says that the page of another site asks. Following a link is fine.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}
