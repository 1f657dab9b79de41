package parse

import (
	"slices"
	"strings"
	"time"
)

// A Certificate is one of a node's certificates, without the certificate itself.
type Certificate struct {
	File      string // pve-root-ca.pem, pve-ssl.pem, pveproxy-ssl.pem
	Subject   string // "/OU=PVE Cluster Node/O=Proxmox Virtual Environment/CN=pve1.home.arpa"
	Issuer    string
	NotBefore *time.Time // UTC
	NotAfter  *time.Time
	Names     []string // subject alternative names, sorted
	KeyType   string
	KeyBits   *int
}

// Certificates reads /nodes/N/certificates/info of pvesh (PVE 7 to 9):
//
//	[{"filename":"pve-ssl.pem","issuer":"/CN=…","notafter":1859041674,"notbefore":1795969674,"pem":"…","public-key-bits":2048,"public-key-type":"rsaEncryption","san":["pve1"],"subject":"/CN=pve1.home.arpa"}]
//
// They are sorted by file. An entry without a file name is left out and noted,
// one without an end is noted.
func Certificates(out []byte) ([]Certificate, []Note, error) {
	list, notes, err := jsonList("certificates", out)
	if err != nil {
		return nil, nil, err
	}
	certificates := []Certificate{}
	for _, o := range list {
		c := Certificate{
			File: o.text("filename"), Subject: o.text("subject"), Issuer: o.text("issuer"), NotBefore: o.seconds("notbefore"), NotAfter: o.seconds("notafter"),
			Names: o.texts("san"), KeyType: o.text("public-key-type"), KeyBits: smallInt(o.integer("public-key-bits")),
		}
		if c.File == "" {
			o.note("filename", "a name")
			continue
		}
		if c.NotAfter == nil {
			o.note("notafter", "seconds since 1970")
		}
		certificates = append(certificates, c)
	}
	slices.SortFunc(certificates, func(a, b Certificate) int { return strings.Compare(a.File, b.File) })
	return certificates, *notes, nil
}
