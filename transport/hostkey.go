package transport

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func (k *hostKeys) hasAuthority() bool {
	for _, l := range k.keys {
		if l.marker == "cert-authority" {
			return true
		}
	}
	return false
}

// ofKind returns this host's plain keys of one type.
func (k *hostKeys) ofKind(keyType string) []knownKey {
	var out []knownKey
	for _, l := range k.keys {
		if l.marker == "" && l.key.Type() == keyType {
			out = append(out, l)
		}
	}
	return out
}

// check is the host key callback: nil, or an *Error with code HOST_KEY. A
// certificate that does not count leaves its key to be judged as a plain one.
func (k *hostKeys) check(_ string, _ net.Addr, key ssh.PublicKey) error {
	if err := k.checkRevoked(key); err != nil {
		return err
	}
	plain, invalid := key, error(nil)
	if cert, ok := key.(*ssh.Certificate); ok {
		plain = cert.Key
		if k.authority(cert.SignatureKey) {
			if invalid = k.checkCert(cert); invalid == nil {
				return nil
			}
		}
	}
	same := k.ofKind(plain.Type())
	for _, l := range same {
		if equalKeys(l.key, plain) {
			return nil
		}
	}
	switch {
	case invalid != nil:
		return invalid
	case len(same) > 0 && !same[0].portless:
		return k.changed(same[0], plain)
	}
	return k.unknown(plain)
}

func (k *hostKeys) authority(key ssh.PublicKey) bool {
	for _, l := range k.keys {
		if l.marker == "cert-authority" && equalKeys(l.key, key) {
			return true
		}
	}
	return false
}

// checkCert checks what a trusted authority signed: type, principal, time.
func (k *hostKeys) checkCert(cert *ssh.Certificate) error {
	reason := ""
	if cert.CertType != ssh.HostCert {
		reason = "it is a user certificate"
	} else if err := new(ssh.CertChecker).CheckCert(k.names[len(k.names)-1], cert); err != nil {
		reason = strings.TrimPrefix(err.Error(), "ssh: ")
	}
	if reason == "" {
		return nil
	}
	return &Error{
		Code: HostKey, Message: fmt.Sprintf("host certificate %s is not valid for %s: %s", said([]byte(cert.KeyId)), k.names[0], said([]byte(reason))),
		Hint: "issue a new host certificate with this name as principal, or correct HostKeyAlias",
	}
}

func (k *hostKeys) checkRevoked(key ssh.PublicKey) error {
	parts := []ssh.PublicKey{key}
	if cert, ok := key.(*ssh.Certificate); ok {
		parts = append(parts, cert.Key, cert.SignatureKey)
	}
	for _, l := range k.revoked {
		for _, part := range parts {
			if equalKeys(l.key, part) {
				return &Error{
					Code: HostKey, Message: fmt.Sprintf("HOST KEY REVOKED: %s is marked as revoked (%s); not connecting", shownKey(part), l.where()),
					Hint: "whoever presents this key must not be trusted; give the node a new host key",
				}
			}
		}
	}
	return nil
}

func (k *hostKeys) changed(old knownKey, got ssh.PublicKey) error {
	return &Error{
		Code: HostKey, Message: fmt.Sprintf("HOST KEY CHANGED: known %s %s (%s), got %s; not connecting", kindOf(old.key), ssh.FingerprintSHA256(old.key), old.where(), ssh.FingerprintSHA256(got)),
		Hint: fmt.Sprintf("if the node was installed anew, verify the new fingerprint on its console (%s), then: ssh-keygen -R %s -f %s", showCommand(got), shellName(k.names[0]), old.file),
	}
}

func (k *hostKeys) unknown(got ssh.PublicKey) error {
	also := ""
	if len(k.keys) > 0 {
		l := k.keys[0]
		what := "a " + kindOf(l.key) + " key"
		if l.marker != "" {
			what = "an authority"
		} else if l.portless {
			what = "a key of " + k.names[len(k.names)-1] + " on port 22"
		}
		also = fmt.Sprintf("; %s has only %s", l.where(), what)
	}
	add := "add to " + cmp.Or(k.add, "~/.ssh/known_hosts")
	if k.add == os.DevNull {
		add = "name a file as UserKnownHostsFile in ssh_config in place of " + k.add + ", and add to it"
	}
	return &Error{
		Code: HostKey, Message: fmt.Sprintf("host key unknown: %s for %s (looked in %s%s)", shownKey(got), strings.Join(k.names, ","), k.places(), also),
		Hint: fmt.Sprintf("verify it on the node (%s), then %s: %s", showCommand(got), add, knownhosts.Line(k.names[:1], got)),
	}
}

func (k *hostKeys) places() string {
	if len(k.looked) == 0 {
		return "no file"
	}
	return strings.Join(k.looked, ", ")
}

// shownKey is a key as people compare it: ED25519 SHA256:…
func shownKey(k ssh.PublicKey) string { return kindOf(k) + " " + ssh.FingerprintSHA256(k) }

func kindOf(k ssh.PublicKey) string {
	switch t := k.Type(); {
	case t == ssh.KeyAlgoED25519:
		return "ED25519"
	case t == ssh.KeyAlgoRSA:
		return "RSA"
	case strings.HasPrefix(t, "ecdsa-"):
		return "ECDSA"
	default:
		return t
	}
}

// showCommand is what prints the key's fingerprint on the node itself.
func showCommand(k ssh.PublicKey) string {
	return "ssh-keygen -lf /etc/ssh/ssh_host_" + strings.ToLower(kindOf(k)) + "_key.pub"
}

func shellName(name string) string {
	if strings.ContainsAny(name, "[]*?") {
		return "'" + name + "'"
	}
	return name
}

func equalKeys(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
