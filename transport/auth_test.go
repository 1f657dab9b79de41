package transport

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"pvelens/profiles"
)

// A wallet is what an auth case starts from: a home with keys in it.
type wallet struct {
	t    *testing.T
	home string
	tgt  *profiles.Target
	d    *daemon
}

// put writes an identity file and lists it.
func (w *wallet) put(name, data string) string {
	path := write(w.t, filepath.Join(w.home, name), data)
	w.tgt.IdentityFiles = append(w.tgt.IdentityFiles, path)
	return path
}

func (w *wallet) accept(keys ...testKeyPair) { w.d.authorize(w.t, keys...) }

func encrypted(t testing.TB, k testKeyPair) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKeyWithPassphrase(k.raw, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

func many(n int) []testKeyPair {
	out := make([]testKeyPair, n)
	for i := range out {
		out[i] = newEd25519()
	}
	return out
}

const (
	trustCA      = "TrustedUserCAKeys $DIR/ca.pub"
	passwordOnly = "PubkeyAuthentication no\nPasswordAuthentication yes\nKbdInteractiveAuthentication no"
	secondFactor = "AuthenticationMethods publickey,password\nPasswordAuthentication yes"
)

// authCases run against a real sshd. text is part of the error; "" is a login.
var authCases = []struct {
	name, config string
	set          func(w *wallet)
	text, hint   string
}{
	{name: "ed25519 file", set: func(w *wallet) { k := newEd25519(); w.accept(k); w.put("id", string(k.pem)) }},
	{name: "ecdsa file", set: func(w *wallet) { k := keyKinds()["ecdsa"]; w.accept(k); w.put("id", string(k.pem)) }},
	{name: "rsa file", set: func(w *wallet) { k := keyKinds()["rsa"]; w.accept(k); w.put("id", string(k.pem)) }},
	{name: "rsa file, sha2-256 only", config: "PubkeyAcceptedAlgorithms rsa-sha2-256", set: func(w *wallet) {
		w.tgt.PubkeyAcceptedAlgorithms = []string{"ssh-rsa", "rsa-sha2-256"} // sshd advertises both; ssh needs this too
		k := keyKinds()["rsa"]
		w.accept(k)
		w.put("id", string(k.pem))
	}},
	{name: "rsa in the agent", set: func(w *wallet) { k := keyKinds()["rsa"]; w.accept(k); w.tgt.IdentityAgent = agentWith(w.t, k) }},
	{name: "legacy PEM", set: func(w *wallet) {
		k := keyKinds()["ecdsa"]
		der, err := x509.MarshalECPrivateKey(k.raw.(*ecdsa.PrivateKey))
		if err != nil {
			w.t.Fatal(err)
		}
		w.accept(k)
		w.put("id", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	}},
	{name: "second file", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("first", string(newEd25519().pem))
		w.put("second", string(k.pem))
	}},
	{name: "file that does not exist beside a good one", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.tgt.IdentityFiles = append(w.tgt.IdentityFiles, filepath.Join(w.home, "missing"))
		w.put("id", string(k.pem))
	}},
	{name: "encrypted, in the agent", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", encrypted(w.t, k))
		w.tgt.IdentityAgent = agentWith(w.t, append(many(8), k)...)
	}},
	{name: "encrypted, not in the agent", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", encrypted(w.t, k))
		w.tgt.IdentityAgent = agentWith(w.t)
	}, text: "no key to offer to", hint: "ssh-add"},
	{name: "encrypted, unused, beside a good one", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("locked", encrypted(w.t, newEd25519()))
		w.put("id", string(k.pem))
	}},
	{name: "public key selects an agent key", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id.pub", k.authorized()+"\n")
		w.tgt.IdentityAgent, w.tgt.IdentitiesOnly = agentWith(w.t, append(many(8), k)...), true
	}},
	{name: "only the public half is there", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		write(w.t, filepath.Join(w.home, "id.pub"), k.authorized()+"\n")
		w.tgt.IdentityFiles = []string{filepath.Join(w.home, "id")}
		w.tgt.IdentityAgent, w.tgt.IdentitiesOnly = agentWith(w.t, append(many(8), k)...), true
	}},
	{name: "public key that is not in the agent", set: func(w *wallet) {
		w.put("id.pub", newEd25519().authorized()+"\n")
	}, text: "is a public key that is not in the agent", hint: "ssh-add"},
	{name: "nine agent keys, the right one named", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
		w.tgt.IdentityAgent = agentWith(w.t, append(many(8), k)...)
	}},
	{name: "nine agent keys, the right one last", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.tgt.IdentityAgent = agentWith(w.t, append(many(8), k)...)
	}, text: "refused 5 keys (agent SHA256:", hint: "IdentitiesOnly yes"},
	{name: "five keys against MaxAuthTries 3", config: "MaxAuthTries 3", set: func(w *wallet) {
		w.accept()
		w.tgt.IdentityAgent = agentWith(w.t, many(5)...)
	}, text: "too many authentication failures", hint: "IdentitiesOnly yes"},
	{name: "identities only", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(newEd25519().pem))
		w.tgt.IdentityAgent, w.tgt.IdentitiesOnly = agentWith(w.t, k), true
	}, text: "refused 1 key (~/id SHA256:", hint: "authorized_keys"},
	{name: "agent that is not there, good file", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
		w.tgt.IdentityAgent = filepath.Join(w.home, "gone")
	}},
	{name: "agent that is not there, no file", set: func(w *wallet) {
		w.tgt.IdentityAgent = filepath.Join(w.home, "gone")
	}, text: "the agent at ~/gone cannot be asked: connect: no such file or directory", hint: "ssh-add"},
	{name: "key file that others can read", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		os.Chmod(w.put("id", string(k.pem)), 0o644)
	}, text: "key ~/id is ignored: its mode 0644 lets others read it; run: chmod 600 ~/id"},
	{name: "key file that is none", set: func(w *wallet) { w.put("id", "-----BEGIN NONSENSE-----\n") }, text: "key ~/id cannot be used: not a private key"},
	{name: "security key in the agent", set: func(w *wallet) {
		a := newToken(w.t)
		line := string(ssh.MarshalAuthorizedKey(a.pub))
		os.WriteFile(filepath.Join(w.d.dir, "authorized_keys"), []byte(line), 0o644)
		w.tgt.IdentityAgent = serveAgent(w.t, a)
	}},
	{name: "security key as a file only", set: func(w *wallet) {
		a := newToken(w.t)
		w.put("id_sk", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n")
		write(w.t, filepath.Join(w.home, "id_sk.pub"), string(ssh.MarshalAuthorizedKey(a.pub)))
	}, text: "key ~/id_sk is a security key, which needs ssh-agent; run: ssh-add ~/id_sk"},
	{name: "user certificate", config: trustCA, set: func(w *wallet) {
		k := newEd25519()
		w.put("id", string(k.pem))
		w.cert("id-cert.pub", k, time.Hour, w.tgt.User)
	}},
	{name: "user certificate of an rsa key", config: trustCA, set: func(w *wallet) {
		k := keyKinds()["rsa"]
		w.put("id", string(k.pem))
		w.cert("id-cert.pub", k, time.Hour, w.tgt.User)
	}},
	{name: "certificate file for an agent key", config: trustCA, set: func(w *wallet) {
		k := keyKinds()["rsa"]
		w.tgt.IdentityAgent = agentWith(w.t, append(many(6), k)...)
		w.tgt.CertificateFiles = []string{w.cert("my-cert.pub", k, time.Hour, w.tgt.User)}
	}},
	{name: "certificate in the agent", config: trustCA, set: func(w *wallet) {
		k := newEd25519()
		ring := agent.NewKeyring()
		ring.Add(agent.AddedKey{PrivateKey: k.raw, Certificate: certFor(w.t, k, ssh.UserCert, time.Hour, w.tgt.User)})
		w.tgt.IdentityAgent = serveAgent(w.t, ring)
	}},
	{name: "certificate for another user", config: trustCA, set: func(w *wallet) {
		k := newEd25519()
		w.put("id", string(k.pem))
		w.cert("id-cert.pub", k, time.Hour, "somebody")
	}, text: "certificate ~/id-cert.pub is for somebody, not for "},
	{name: "expired certificate", config: trustCA, set: func(w *wallet) {
		k := newEd25519()
		w.put("id", string(k.pem))
		w.cert("id-cert.pub", k, -time.Minute, w.tgt.User)
	}, text: "certificate ~/id-cert.pub expired at "},
	{name: "certificate file without its key", config: trustCA, set: func(w *wallet) {
		w.tgt.CertificateFiles = []string{w.cert("my-cert.pub", newEd25519(), time.Hour, w.tgt.User)}
	}, text: "certificate ~/my-cert.pub has no private key beside it"},
	{name: "key that the server does not know", set: func(w *wallet) { w.put("id", string(newEd25519().pem)) }, text: "refused 1 key (~/id SHA256:", hint: "PermitRootLogin"},
	{name: "login forbidden", config: "DenyUsers *", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
	}, text: "; server allows: ", hint: "AllowUsers"},
	{name: "password only", config: passwordOnly, set: func(w *wallet) { w.put("id", string(newEd25519().pem)) }, text: "allows only password, and pvelens uses keys only", hint: "controlmaster"},
	{name: "second factor", config: secondFactor, set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
	}, text: "key accepted, server also requires password (2FA)", hint: "controlmaster"},
	{name: "no key at all", set: func(w *wallet) {}, text: "no key to offer to ", hint: "IdentityFile"},
	{name: "accepted algorithms rule the key out", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
		w.tgt.PubkeyAcceptedAlgorithms = []string{"rsa-sha2-512"}
	}, text: "key ~/id is not among PubkeyAcceptedAlgorithms"},
	{name: "old server", config: "KexAlgorithms diffie-hellman-group14-sha1", set: func(w *wallet) {}, text: `no common algorithm: key exchange; the server offers only "diffie-hellman-group14-sha1`, hint: "old"},
	{name: "own lists of algorithms", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
		w.tgt.KexAlgorithms = []string{"diffie-hellman-group1-sha1", "curve25519-sha256"}
		w.tgt.Ciphers = []string{"aes256-ctr"}
		w.tgt.MACs = []string{"hmac-sha2-512"}
		w.tgt.HostKeyAlgorithms = []string{"rsa-sha2-512"}
	}},
	{name: "own list without what the server has", config: "KexAlgorithms curve25519-sha256", set: func(w *wallet) {
		w.tgt.KexAlgorithms = []string{"ecdh-sha2-nistp256"}
	}, text: "no common algorithm: key exchange", hint: "KexAlgorithms in ssh_config leaves out"},
	{name: "no way in", config: "AuthenticationMethods none", set: func(w *wallet) { w.put("id", string(newEd25519().pem)) }, text: "admits no way to log in", hint: "AuthenticationMethods"},
	{name: "key file that is not there", set: func(w *wallet) {
		w.tgt.IdentityFiles = []string{filepath.Join(w.home, "gone")}
	}, text: "; no such file: ~/gone", hint: "IdentityFile"},
	{name: "own list of weak algorithms", set: func(w *wallet) { w.tgt.Ciphers = []string{"3des-cbc"} }, text: "Ciphers: none of the algorithms", hint: "ssh_config"},
	{name: "banner", config: "Banner $DIR/ca.pub", set: func(w *wallet) {}, text: `; the server says "ssh-ed25519`},
}
