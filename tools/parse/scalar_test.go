package parse

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJSONScalars(t *testing.T) {
	type row struct {
		I jsonInt
		F jsonFloat
		B jsonBool
		T jsonText
	}
	tests := []struct {
		name, in string
		want     row
	}{
		{"numbers", `{"I":9007199254740993,"F":0.5,"B":1,"T":12}`, row{jsonInt{new(int64(9007199254740993))}, jsonFloat{new(0.5)}, jsonBool{new(true)}, jsonText{new("12")}}},
		{"text", `{"I":"9007199254740993","F":"0.50","B":"0","T":"a"}`, row{jsonInt{new(int64(9007199254740993))}, jsonFloat{new(0.5)}, jsonBool{new(false)}, jsonText{new("a")}}},
		{"JSON flags", `{"I":1.0,"F":3,"B":true,"T":true}`, row{jsonInt{new(int64(1))}, jsonFloat{new(3.0)}, jsonBool{new(true)}, jsonText{new("true")}}},
		{"exponents", `{"I":1.5e3,"F":"1e3"}`, row{I: jsonInt{new(int64(1500))}, F: jsonFloat{new(1000.0)}}},
		{"null", `{"I":null,"F":null,"B":null,"T":null}`, row{}},
		{"no number", `{"I":"N/A","F":"","B":"maybe","T":[1]}`, row{}},
		{"fraction and object", `{"I":1.5,"F":{},"B":{},"T":{}}`, row{}},
		{"beyond 64 bits", `{"I":9223372036854775808,"F":"1e999"}`, row{}},
		{"hex and huge exponents", `{"I":"0x10","F":"0x1p4"}`, row{}},
		{"an exponent that would fill memory", `{"I":"1e999999999","F":"1e999999999"}`, row{}},
		{"empty text stays text", `{"T":""}`, row{T: jsonText{new("")}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got row
			if err := json.Unmarshal([]byte(tt.in), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseSize(t *testing.T) {
	tests := []struct {
		in   string
		want *int64
	}{
		{"8G", new(int64(8 << 30))}, {"512M", new(int64(512 << 20))}, {"1.5T", new(int64(3 << 39))},
		{"4194304", new(int64(4194304))}, {"528K", new(int64(528 << 10))}, {"2g", new(int64(2 << 30))},
		{"", nil}, {"G", nil}, {"-1G", nil}, {"8GB", nil}, {"99999999999T", nil}, {"1/2G", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, parseSize(tt.in)); diff != "" {
			t.Errorf("parseSize(%q) (-want +got)\n%s", tt.in, diff)
		}
	}
}

// A scalar never fails, and what it calls an integer is the integer written.
func FuzzJSONInt(f *testing.F) {
	for _, s := range []string{"5", `"5"`, "5.0", "1e3", `"N/A"`, "null", "[1]", "9007199254740993", `"1e999999999"`, "-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var n jsonInt
		if err := n.UnmarshalJSON([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if n.Value == nil || strings.ContainsAny(in, ".eE") {
			return
		}
		var again jsonInt
		out, _ := json.Marshal(*n.Value)
		if err := again.UnmarshalJSON(out); err != nil || again.Value == nil || *again.Value != *n.Value {
			t.Errorf("%q: %d does not come back", in, *n.Value)
		}
	})
}
