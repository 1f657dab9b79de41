package main

import "testing"

func TestStrangeNamesAreNotCompleted(t *testing.T) {
	for name, want := range map[string]bool{
		"immich": false, "102": false, "web-proxy.home.arpa": false, "VM 205": false, "my_guest": false, "": false,
		"$(id)": true, "`id`": true, "a;b": true, "a&b": true, "a|b": true, "a>b": true, "a'b": true, `a"b`: true, `a\b`: true,
		"a\tb": true, "a\nb": true, "*": true, "~": true, "{a}": true, "[a]": true, "größe": true, "!x": true, "#x": true, "a@b": true,
	} {
		if strange(name) != want {
			t.Errorf("%q: %v, want %v", name, !want, want)
		}
	}
}
