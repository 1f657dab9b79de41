package transport

import (
	"slices"

	"golang.org/x/crypto/ssh"

	"pvelens/profiles"
)

// clientConfig returns the strict configuration of one login. Lists in the
// target narrow ours and never add what x/crypto calls insecure.
func clientConfig(t *profiles.Target, keys *hostKeys, who *credentials) (*ssh.ClientConfig, error) {
	can := ssh.SupportedAlgorithms()
	cfg := &ssh.ClientConfig{
		User:            t.User,
		HostKeyCallback: keys.check,
		Auth:            []ssh.AuthMethod{ssh.PublicKeysCallback(who.signers)},
		AuthCallback:    who.observe,
		BannerCallback:  who.banner,
		ClientVersion:   "SSH-2.0-pvelens",
	}
	var err error
	pick := func(keyword string, wanted, ours []string) []string {
		out := narrowed(wanted, ours)
		if len(out) == 0 && err == nil {
			err = &Error{
				Code: Config, Message: keyword + ": none of the algorithms in ssh_config is both known and secure",
				Hint: "remove " + keyword + " from ssh_config for this host, or add a modern algorithm",
			}
		}
		return out
	}
	cfg.KeyExchanges = pick("KexAlgorithms", t.KexAlgorithms, can.KeyExchanges)
	cfg.Ciphers = pick("Ciphers", t.Ciphers, can.Ciphers)
	cfg.MACs = pick("MACs", t.MACs, strictMACs(can.MACs))
	if t.HostKeyAlgorithms != nil {
		cfg.HostKeyAlgorithms = pick("HostKeyAlgorithms", t.HostKeyAlgorithms, can.HostKeys)
	} else {
		cfg.HostKeyAlgorithms = keys.algorithms()
	}
	return cfg, err
}

// strictMACs is all without HMAC-SHA-1, which x/crypto still counts as secure.
func strictMACs(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(m string) bool { return m == ssh.HMACSHA1 })
}

// narrowed returns wanted without what is not in ours; nil means ours.
func narrowed(wanted, ours []string) []string {
	if wanted == nil {
		return ours
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(a string) bool { return !slices.Contains(ours, a) })
}

// The plain host key algorithms, best first, and the certificate twin of each.
var hostKeyAlgorithms = []struct{ plain, cert, keyType string }{
	{ssh.KeyAlgoED25519, ssh.CertAlgoED25519v01, ssh.KeyAlgoED25519},
	{ssh.KeyAlgoECDSA256, ssh.CertAlgoECDSA256v01, ssh.KeyAlgoECDSA256},
	{ssh.KeyAlgoECDSA384, ssh.CertAlgoECDSA384v01, ssh.KeyAlgoECDSA384},
	{ssh.KeyAlgoECDSA521, ssh.CertAlgoECDSA521v01, ssh.KeyAlgoECDSA521},
	{ssh.KeyAlgoRSASHA512, ssh.CertAlgoRSASHA512v01, ssh.KeyAlgoRSA},
	{ssh.KeyAlgoRSASHA256, ssh.CertAlgoRSASHA256v01, ssh.KeyAlgoRSA},
}

// algorithms asks the server first for the kinds of key that known_hosts has,
// so that a good key is found beside a stale one of another kind. The rest
// follows only so that the error can show the key the server has.
func (k *hostKeys) algorithms() []string {
	var certs, known, portless, other []string
	for _, a := range hostKeyAlgorithms {
		if k.hasAuthority() {
			certs = append(certs, a.cert)
		}
		switch same := k.ofKind(a.keyType); {
		case len(same) == 0:
			other = append(other, a.plain)
		case same[0].portless:
			portless = append(portless, a.plain)
		default:
			known = append(known, a.plain)
		}
	}
	return slices.Concat(certs, known, portless, other)
}
