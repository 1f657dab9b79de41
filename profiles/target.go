package profiles

import "time"

// Target is what OpenSSH's client would do for one destination: the answer of a Resolver, read-only for its users
// (it is shared between callers, copy it before changing it). Tokens and ~ are expanded; a path that is relative in
// ssh_config is relative to the working directory, as with ssh.
type Target struct {
	// Name is the destination as written in the profile.
	Name string
	// HostName is the name or address to dial, without brackets; Port the TCP port (1..65535); User the remote account.
	HostName string
	User     string
	Port     int

	// IdentityFiles and CertificateFiles in the order they are to be tried; files that do not exist may be listed
	// (OpenSSH's defaults are), and are skipped by the user. IdentitiesOnly: no keys of the agent beyond these files.
	IdentityFiles    []string
	CertificateFiles []string
	IdentitiesOnly   bool
	// IdentityAgent is a socket path; "" is SSH_AUTH_SOCK of the environment, "none" is no agent.
	IdentityAgent string

	// HostKeyAlias, when set, is the name looked up in the known_hosts files in place of HostName and Port.
	HostKeyAlias     string
	UserKnownHosts   []string
	GlobalKnownHosts []string
	RevokedHostKeys  string

	// ProxyJump is the way to the host, first hop first; empty is a direct connection.
	ProxyJump []*Target
	// ProxyCommand and KnownHostsCommand are set only in a profile with allow_local_commands. Tokens are expanded, but
	// for KnownHostsCommand those that only a connection knows, %f %H %I %K %t, and with them %%.
	ProxyCommand      string
	KnownHostsCommand string

	// ConnectTimeout 0 is not set, ServerAliveInterval 0 is off, ServerAliveCountMax is OpenSSH's 3 unless set.
	ConnectTimeout      time.Duration
	ServerAliveInterval time.Duration
	ServerAliveCountMax int

	// AddressFamily is any, inet or inet6; BindAddress the local address, "" for none.
	AddressFamily string
	BindAddress   string

	// Algorithm lists in order of preference; nil is not configured: the strict defaults of the transport.
	KexAlgorithms            []string
	HostKeyAlgorithms        []string
	PubkeyAcceptedAlgorithms []string
	Ciphers                  []string
	MACs                     []string

	// ControlPath is the multiplexing socket, for transport = "controlmaster"; "" for none.
	ControlPath string

	// Resolver names who answered: builtin or openssh.
	Resolver string
	// Notes are sentences for the user about what pvelens treats otherwise than ssh would.
	Notes []string
}
