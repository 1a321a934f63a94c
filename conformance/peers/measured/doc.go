// Package measured is what a run of conformance/peers has measured: one side keeps it in a file, the other draws it.
package measured
