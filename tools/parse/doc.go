// Package parse reads the output of the permitted forms: bytes in, a struct or
// an error out.
//
// One file stands for one source. Nothing here opens a file, asks the clock or
// touches the network. What was not measured is a nil pointer, never zero. A
// number, flag or name that cannot be read is absent; an output whose shape is
// not the program's is an error that names what was wanted and, where there is
// one, the line number, but never text of the remote side. The promise would be
// broken by a parser that fills a gap with a default, or that returns half an
// output as if it were whole.
package parse
