// Command plots draws what conformance/peers has measured: docs/peers/*.svg from docs/peers/figures.json.
//
// It is a program of its own, because what it links would be in the memory of the registrars that are measured.
package main
