package parse

import "testing"

func TestCertificates(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []Certificate
		notes    []string
		err      string
	}{
		{"recorded", string(captured(t, "certificates.json")), []Certificate{
			{File: "pve-root-ca.pem", Subject: "/CN=Proxmox Virtual Environment/OU=8c3c5f2e-lab/O=PVE Cluster Manager CA", Issuer: "/CN=Proxmox Virtual Environment/OU=8c3c5f2e-lab/O=PVE Cluster Manager CA", NotBefore: unix(1795969673), NotAfter: unix(2111329674), Names: []string{}, KeyType: "rsaEncryption", KeyBits: new(2048)},
			{File: "pve-ssl.pem", Subject: "/OU=PVE Cluster Node/O=Proxmox Virtual Environment/CN=pve1.home.arpa", Issuer: "/CN=Proxmox Virtual Environment/OU=8c3c5f2e-lab/O=PVE Cluster Manager CA", NotBefore: unix(1795969674), NotAfter: unix(1859041674), Names: []string{"0000:0000:0000:0000:0000:0000:0000:0001", "127.0.0.1", "192.168.20.11", "localhost", "pve1", "pve1.home.arpa"}, KeyType: "rsaEncryption", KeyBits: new(2048)},
		}, []string{}, ""},
		{"no file, no end", `[{"subject":"x"},{"filename":"a.pem","notafter":"never"}]`, []Certificate{{File: "a.pem", Names: []string{}}}, []string{"line 1: filename: want a name", "line 2: notafter: want a whole number", "line 2: notafter: want seconds since 1970"}, ""},
		{"nothing", "", nil, nil, "certificates: want a JSON array of objects, got nothing"},
		{"half", `[{"filename"`, nil, nil, "got something else at byte"},
		{"null", "null", nil, nil, "got null"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, notes, err := Certificates([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.want, got)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}
