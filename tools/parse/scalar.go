package parse

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// The JSON of Proxmox and of its guests writes one value in several ways: 5,
// "5", 5.0, true, 1, "1". The scalars below accept all of them, and a value
// that cannot be read is absent instead of an error, so that one odd field
// never costs the whole answer.

// jsonInt is a 64-bit integer, exact, written as a number or as text.
// Absent, null and anything that is no integer leave Value nil.
type jsonInt struct{ Value *int64 }

// UnmarshalJSON never fails.
func (n *jsonInt) UnmarshalJSON(raw []byte) error {
	n.Value = parseInt(scalarText(raw))
	return nil
}

// jsonFloat is a finite number, written as a number or as text.
type jsonFloat struct{ Value *float64 }

// UnmarshalJSON never fails.
func (n *jsonFloat) UnmarshalJSON(raw []byte) error {
	n.Value = parseFloat(scalarText(raw))
	return nil
}

// jsonBool is a flag: true, 1, "1", "yes", "on" and their opposites.
type jsonBool struct{ Value *bool }

// UnmarshalJSON never fails.
func (b *jsonBool) UnmarshalJSON(raw []byte) error {
	b.Value = parseBool(scalarText(raw))
	return nil
}

// True reports whether the flag is set; absent is false.
func (b jsonBool) True() bool { return b.Value != nil && *b.Value }

// jsonText is text; a number or a flag is kept as it is written. Absent, null,
// lists and objects leave Value nil.
type jsonText struct{ Value *string }

// UnmarshalJSON never fails.
func (t *jsonText) UnmarshalJSON(raw []byte) error {
	t.Value = nil
	if isScalar(raw) {
		t.Value = new(scalarText(raw))
	}
	return nil
}

// String returns the text; absent is empty.
func (t jsonText) String() string {
	if t.Value == nil {
		return ""
	}
	return *t.Value
}

func isScalar(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] != '{' && raw[0] != '[' && !bytes.Equal(raw, []byte("null"))
}

// scalarText returns a JSON scalar as text without its quotes; what is no
// scalar is empty.
func scalarText(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	if !isScalar(raw) {
		return ""
	}
	if raw[0] != '"' {
		return string(raw)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// parseInt reads decimal text such as 12, -3 or 5.0 exactly; nil if it is no
// integer of 64 bits.
func parseInt(s string) *int64 {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return &n
	}
	if !isDecimal(s) {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return nil
	}
	return new(r.Num().Int64())
}

// parseFloat reads a finite decimal number; nil if it is none.
func parseFloat(s string) *float64 {
	s = strings.TrimSpace(s)
	if !isDecimal(s) {
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	return &f
}

// isDecimal keeps hexadecimal, fractions, underscores and exponents that would
// cost memory away from the number readers.
func isDecimal(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	return strings.Trim(mantissa, "+-.0123456789") == "" &&
		strings.Trim(exponent, "+-0123456789") == "" && len(exponent) <= 4
}

// parseBool reads a flag as Proxmox does (1, on, yes, true and 0, off, no,
// false, in any letter case); nil if it is none.
func parseBool(s string) *bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "1", "on", "yes", "true":
		return new(true)
	case "0", "off", "no", "false":
		return new(false)
	}
	return nil
}

// parseSize reads a Proxmox disk size such as 8G, 512M, 1.5T or plain bytes;
// units are powers of 1024; nil if it is none.
func parseSize(s string) *int64 {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil
	}
	shift := strings.IndexByte("KMGTP", s[len(s)-1]&^0x20) + 1
	if shift > 0 {
		s = s[:len(s)-1]
	}
	if strings.Trim(s, "0123456789.") != "" || len(s) > 32 {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil
	}
	r.Mul(r, new(big.Rat).SetInt64(1<<(10*shift)))
	n := new(big.Int).Quo(r.Num(), r.Denom())
	if !n.IsInt64() {
		return nil
	}
	return new(n.Int64())
}
