// Package allowlist is the complete list of the commands that pvelens can run.
//
// Nothing else in the program can run a command: transport takes a [Command],
// and only [Check] makes one, from words that match a line of the table below.
// A word is literal unless it is a slot. There are no deny rules, no wildcard
// slot, and no configuration or flag that adds a form. The promise would break
// if a line here asked for a change, or if a slot admitted a path, a blank, a
// quote or an option.
//
// This file and templates.go are data only; a test parses them and says so.
package allowlist

// The roles: where a form is sent.
const (
	PVE    Role = "pve"    // a Proxmox VE node
	Docker Role = "docker" // a host that runs Docker or podman, reached directly
	Both   Role = "both"   // either of them
)

// The rights a form needs on the node.
const (
	Any     Rights = "any"      // any user
	WWWData Rights = "www-data" // root, or a member of the group www-data
	Root    Rights = "root"     // root
)

// The effects a form has although it asks for no change.
const (
	None      Effect = "none"      // none found in the programs' sources
	Cache     Effect = "cache"     // flushes or fills a cache on the node
	Probe     Effect = "probe"     // sends a packet to the address asked for
	Activates Effect = "activates" // activates the storage, as pvestatd does every 10 s
	Agent     Effect = "agent"     // talks to the agent inside the guest, which may log it
)

// The slots: the only words, or parts of a word between two slashes, that vary.
var slots = []slot{
	{name: "{vmid}", first: "123456789", rest: digits, min: 3, max: 9, rule: "100..999999999, digits only, no sign, no leading zero"},
	{name: "{node}", first: alnum, rest: alnum + "-", min: 1, max: 63, last: alnum, rule: "a DNS label: letters, digits and inner hyphens, at most 63"},
	{name: "{storage}", first: alpha, rest: alnum + "._-", min: 1, max: 100, rule: "a letter, then letters, digits, dot, underscore or hyphen, at most 100"},
	{name: "{container}", first: lowerHex, rest: lowerHex, min: 64, max: 64, repeat: 100, rule: "64 lower-case hex digits, 1 to 100 of them as the last words"},
	{name: "{ip}", first: lowerHex + ":", rest: lowerHex + ":.", min: 2, max: 45, rule: "one unicast address in its shortest form: no zone, not IPv4-mapped, loopback or unspecified"},
	{name: "{disk}", first: alpha, rest: alnum, min: 3, max: 16, rule: "sd and 1 to 3 letters, or nvme0n1 and the like"},
}

const (
	digits   = "0123456789"
	lowerHex = "0123456789abcdef"
	alpha    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	alnum    = digits + alpha
)

// The prefixes of the line that is sent. Ending an SSH session does not end a
// root process on the node; timeout does.
var (
	timeoutWords = argv{"/usr/bin/timeout", "-k", "2"} // then the form's limit
	sudoWords    = argv{"/usr/bin/sudo", "-n", "--"}
)

// GatePath is where the optional node-side gate is installed.
const GatePath = "/usr/local/libexec/pvelens-gate"

// ClientOnly is the one form that a gate refuses by design: when a node answers
// it with exit 0, no gate stands in the way there.
const ClientOnly = "lock-probe"

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Good exits: a grep that finds nothing exits 1, and 2 when one of its files is
// missing; for tail and dpkg-query 1 is good only when stderr names what is
// missing (partial); smartctl's exit is a bit mask.
var (
	zero    = exits{codes: []int{0}}
	search  = exits{codes: []int{0, 1}}
	files   = exits{codes: []int{0, 1, 2}}
	missing = exits{codes: []int{0, 1}, partial: true}
	quorate = exits{codes: []int{0, 2}}
	mask    = exits{codes: []int{0}, mask: true}
)

// The table: one line a form. The columns: identity, role, rights, effect, limit in
// seconds, cap in bytes of stdout, good exits, words, what it can reveal, why.
var forms = []Form{
	// Proxmox nodes: files that every node of the cluster shares. grep and tail only
	// print; no option here makes them write. Where a file can hold a secret, grep
	// lists the keys that may travel.
	{"state", PVE, WWWData, None, 10, 16 * mib, missing, argv{"/usr/bin/tail", "-v", "-n", "+1", "/etc/pve/.members", "/etc/pve/.vmlist", "/etc/pve/.rrd"}, "names, addresses of nodes, live numbers", "nodes, guests and storages of the whole cluster"},
	{"guest-configs", PVE, WWWData, None, 20, 64 * mib, search, argv{"/bin/grep", "-rasoE", "--include=[1-9]*.conf", "--exclude-dir=priv", "--exclude-dir=openvz", keysPattern, "/etc/pve/nodes"}, "hardware, disks, networks, tags; of secret keys the name only", "every guest's configuration"},
	{"lxc-config", PVE, WWWData, None, 10, mib, search, argv{"/bin/grep", "-asoE", keysPattern, "/etc/pve/nodes/{node}/lxc/{vmid}.conf"}, "as guest-configs, one container", "one container, also of an offline node"},
	{"qemu-config", PVE, WWWData, None, 10, mib, search, argv{"/bin/grep", "-asoE", keysPattern, "/etc/pve/nodes/{node}/qemu-server/{vmid}.conf"}, "as guest-configs, one VM", "one VM, also of an offline node"},
	{"cluster-configs", PVE, WWWData, None, 10, 4 * mib, files, argv{"/bin/grep", "-asHE", configKeysPattern, "/etc/pve/storage.cfg", "/etc/pve/jobs.cfg", "/etc/pve/replication.cfg", "/etc/pve/ha/resources.cfg", "/etc/pve/ha/groups.cfg", "/etc/pve/ha/rules.cfg", "/etc/pve/mapping/pci.cfg", "/etc/pve/mapping/usb.cfg", "/etc/pve/mapping/directory.cfg"}, "storages, servers, paths, jobs; no password, mail address or comment", "storages, backup jobs, replication, HA, mappings"},
	{"ha-state", PVE, WWWData, None, 10, 4 * mib, files, argv{"/bin/grep", "-rs", "--exclude-dir=priv", "--include=manager_status", "--include=lrm_status", "^.", "/etc/pve/ha", "/etc/pve/nodes"}, "HA services and nodes", "HA master, LRM age, maintenance"},
	{"pools", PVE, WWWData, None, 10, mib, search, argv{"/bin/grep", "-sE", "^pool:", "/etc/pve/user.cfg"}, "pools, their comments, members and storages; no user or token", "pools"},
	{"corosync", PVE, WWWData, None, 10, mib, search, argv{"/bin/grep", "-sE", corosyncPattern, "/etc/pve/corosync.conf"}, "votes, node names and ring addresses; no key", "votes, QDevice, margin"},
	{"datacenter", PVE, WWWData, None, 10, mib, search, argv{"/bin/grep", "-sE", datacenterPattern, "/etc/pve/datacenter.cfg"}, "migration network, HA and tag settings; no proxy", "migration network, defaults"},
	{"startup-delay", PVE, WWWData, None, 10, mib, search, argv{"/bin/grep", "-rs", "--exclude-dir=priv", "--include=config", "-E", startupPattern, "/etc/pve/nodes"}, "start delays", "boot order"},
	{"sdn", PVE, WWWData, None, 10, mib, files, argv{"/bin/grep", "-asHE", sdnPattern, "/etc/pve/sdn/subnets.cfg", "/etc/pve/sdn/vnets.cfg", "/etc/pve/sdn/zones.cfg"}, "subnets, gateways, ranges", "addresses that SDN reserves"},
	{"sdn-ipam", PVE, WWWData, None, 10, 4 * mib, missing, argv{"/usr/bin/tail", "-v", "-n", "+1", "/etc/pve/sdn/pve-ipam-state.json"}, "addresses, MACs and host names that SDN gave out", "addresses that SDN reserves"},

	// Proxmox nodes: the node's own files, read in the same way.
	{"node-proc", PVE, Any, None, 10, mib, missing, argv{"/usr/bin/tail", "-v", "-n", "+1", "/proc/loadavg", "/proc/uptime", "/proc/meminfo", "/proc/stat", "/proc/sys/kernel/osrelease", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory", "/proc/spl/kstat/zfs/arcstats", "/etc/timezone", "/etc/kernel/proxmox-boot-pin"}, "load, memory, kernel, time zone", "memory without the ZFS cache, load, pressure"},
	{"mounts", PVE, Any, None, 10, mib, zero, argv{"/bin/grep", "-oE", mountsPattern, "/proc/self/mounts"}, "mount points; no mount options", "is it mounted?"},
	{"vzdump-defaults", PVE, Any, None, 10, mib, files, argv{"/bin/grep", "-sE", vzdumpPattern, "/etc/vzdump.conf"}, "backup defaults", "defaults of backup jobs"},
	{"updates", PVE, Any, None, 10, 16 * mib, missing, argv{"/usr/bin/tail", "-v", "-n", "+1", "/var/lib/pve-manager/pkgupdates"}, "pending packages", "pending updates, without refreshing the list"},
	{"stamps", PVE, Any, None, 10, mib, search, argv{"/usr/bin/stat", "--format=%Y:%s:%n", "/var/lib/pve-manager/pkgupdates", "/var/cache/apt/pkgcache.bin", "/var/lib/dpkg/status", "/var/log/vzdump"}, "four times and sizes", "the age of the update list"},
	{"apt-repos", PVE, Any, None, 10, mib, files, argv{"/bin/grep", "-rsoE", "--include=*.list", "--include=*.sources", aptPattern, "/etc/apt"}, "Proxmox repositories; none with credentials", "repositories"},
	{"node-tasks", PVE, Any, None, 10, 8 * mib, missing, argv{"/usr/bin/tail", "-v", "-n", "2000", "/var/log/pve/tasks/active", "/var/log/pve/tasks/index.1", "/var/log/pve/tasks/index"}, "tasks, their users and error words", "tasks"},
	{"backup-logs", PVE, Any, None, 20, 8 * mib, files, argv{"/bin/grep", "-rsaoE", "--include=*.log", backupLogPattern, "/var/log/vzdump"}, "start, end, size and errors of each guest's last backup", "why a guest's last backup failed"},
	{"replication", PVE, Any, None, 10, mib, missing, argv{"/usr/bin/tail", "-v", "-n", "+1", "/var/lib/pve-manager/pve-replication-state.json"}, "replication times and errors", "last sync, failures"},
	{"zpool-state", PVE, Any, None, 10, mib, search, argv{"/bin/grep", "-rs", "--include=state", ".", "/proc/spl/kstat/zfs"}, "pool names and states", "a suspended pool is not asked further"},
	{"lxc-cgroup", PVE, Any, None, 10, mib, missing, argv{"/usr/bin/tail", "-v", "-n", "+1", "/sys/fs/cgroup/lxc/{vmid}/memory.current", "/sys/fs/cgroup/lxc/{vmid}/memory.max", "/sys/fs/cgroup/lxc/{vmid}/memory.stat", "/sys/fs/cgroup/lxc/{vmid}/memory.events", "/sys/fs/cgroup/lxc/{vmid}/memory.swap.current", "/sys/fs/cgroup/lxc/{vmid}/cpu.stat", "/sys/fs/cgroup/lxc/{vmid}/cpu.pressure", "/sys/fs/cgroup/lxc/{vmid}/io.pressure", "/sys/fs/cgroup/lxc/{vmid}/memory.pressure"}, "memory and CPU numbers", "a container's true memory, OOM kills, throttling"},
	{"qemu-cgroup", PVE, Any, None, 10, mib, missing, argv{"/usr/bin/tail", "-v", "-n", "+1", "/sys/fs/cgroup/qemu.slice/{vmid}.scope/memory.current", "/sys/fs/cgroup/qemu.slice/{vmid}.scope/memory.max", "/sys/fs/cgroup/qemu.slice/{vmid}.scope/memory.stat", "/sys/fs/cgroup/qemu.slice/{vmid}.scope/memory.events", "/sys/fs/cgroup/qemu.slice/{vmid}.scope/memory.swap.current", "/sys/fs/cgroup/qemu.slice/{vmid}.scope/cpu.stat", "/sys/fs/cgroup/qemu.slice/{vmid}.scope/cpu.pressure", "/sys/fs/cgroup/qemu.slice/{vmid}.scope/io.pressure", "/sys/fs/cgroup/qemu.slice/{vmid}.scope/memory.pressure"}, "memory and CPU numbers", "a VM's true memory on the host, OOM kills"},
	{"lxc-services", PVE, Any, None, 10, mib, files, argv{"/bin/grep", "-rsl", "--include=cgroup.procs", ".", "/sys/fs/cgroup/lxc/{vmid}"}, "names of a container's service groups", "does a Docker daemon run? Asking must not start one"},

	// Proxmox nodes: plain programs, each with the verb or the options that show.
	{"node-df", PVE, Any, None, 10, mib, search, argv{"/bin/df", "--local", "--block-size=1", "--output=fstype,itotal,iused,size,used,avail,source,target"}, "mount points and sizes of local filesystems", "filesystems without waiting for a dead NFS"},
	{"node-packages", PVE, Any, None, 10, mib, missing, argv{"/usr/bin/dpkg-query", "-W", "-f", packageFormat, "pve-manager", "qemu-server", "pve-container", "proxmox-ve", "proxmox-kernel-*", "pve-kernel-*"}, "package versions", "version, installed kernels"},
	{"quorum", PVE, Root, None, 10, mib, quorate, argv{"/usr/sbin/corosync-quorumtool", "-s"}, "votes and members", "votes, margin"},
	{"storage-reasons", PVE, Root, None, 10, mib, search, argv{"/usr/bin/journalctl", "--unit=pvestatd.service", "--since=-15min", "--lines=300", "--no-pager", "--quiet", "--output=short-unix"}, "pvestatd's own messages", "why a storage is inactive, without a probe"},
	{"addresses", PVE, Any, None, 10, 4 * mib, zero, argv{"/bin/ip", "-j", "-d", "addr", "show"}, "interfaces, addresses, MACs", "addresses, bridges"},
	{"neighbours", PVE, Any, None, 10, 4 * mib, zero, argv{"/bin/ip", "-j", "neigh", "show"}, "addresses and MACs seen", "who answers on layer 2"},
	{"routes", PVE, Any, None, 10, 4 * mib, zero, argv{"/bin/ip", "-j", "route", "show", "table", "all"}, "routes", "is the address on-link?"},
	{"bridge-vlans", PVE, Any, None, 10, mib, zero, argv{"/sbin/bridge", "-j", "vlan", "show"}, "VLANs of the bridge ports", "VLANs"},
	{"ping", PVE, Any, Probe, 8, 64 * kib, search, argv{"/bin/ping", "-n", "-c", "1", "-W", "3", "{ip}"}, "whether the address answers", "makes the kernel ask by ARP or ND"},
	{"lvs", PVE, Root, Cache, 15, 4 * mib, zero, argv{"/sbin/lvs", "--reportformat", "json", "--units", "b", "--nosuffix", "-a", "-o", "lv_name,vg_name,lv_attr,lv_size,pool_lv,data_percent,metadata_percent,lv_metadata_size,vg_size,vg_free"}, "volumes and their sizes", "thin pools"},
	{"zpool-status", PVE, Any, None, 15, mib, zero, argv{"/sbin/zpool", "status", "-p"}, "pools, devices, errors", "ZFS health"},
	{"zpool-list", PVE, Any, None, 15, mib, zero, argv{"/sbin/zpool", "list", "-Hp", "-o", "name,size,allocated,free,fragmentation,capacity,health,readonly"}, "pools and sizes", "ZFS space"},
	{"zfs-list", PVE, Any, None, 15, 8 * mib, zero, argv{"/sbin/zfs", "list", "-Hp", "-t", "filesystem,volume", "-o", "name,type,used,avail,refer,quota,refquota,volsize,usedbysnapshots,mountpoint"}, "datasets and sizes", "ZFS quotas and guests' volumes"},
	{"smart", PVE, Root, None, 15, mib, mask, argv{"/usr/sbin/smartctl", "-n", "standby", "-i", "-H", "-A", "-j", "/dev/{disk}"}, "model, health, wear; the serial number is dropped", "disk health, without waking a sleeping disk"},
	{"clock", PVE, Any, None, 5, kib, zero, argv{"/bin/date", "+%s.%N%z"}, "the node's clock", "drift"},

	// Proxmox nodes: Perl, 0.5 to 2 s each, for what only Proxmox knows. pvesh has only
	// get, and --noproxy, without which it would go on to other nodes as root.
	{"lxc-list", PVE, Root, None, 20, mib, zero, argv{"/usr/sbin/pct", "list"}, "names and states", "true state when pvestatd is dead"},
	{"qemu-list", PVE, Root, None, 20, mib, zero, argv{"/usr/sbin/qm", "list"}, "names and states", "true state when pvestatd is dead"},
	{"resources", PVE, Root, None, 20, 16 * mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/cluster/resources", "--output-format", "json"}, "names, states, numbers", "when .rrd has an unknown form"},
	{"lxc-status", PVE, Root, None, 20, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/lxc/{vmid}/status/current", "--output-format", "json"}, "live numbers", "exact state, HA"},
	{"qemu-status", PVE, Root, None, 20, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/qemu/{vmid}/status/current", "--output-format", "json"}, "live numbers", "exact state, HA, balloon"},
	{"lxc-interfaces", PVE, Root, None, 20, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/lxc/{vmid}/interfaces", "--output-format", "json"}, "addresses inside the container", "observed addresses"},
	{"qemu-interfaces", PVE, Root, Agent, 25, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces", "--output-format", "json"}, "addresses inside the VM", "observed addresses"},
	{"qemu-filesystems", PVE, Root, Agent, 25, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/qemu/{vmid}/agent/get-fsinfo", "--output-format", "json"}, "filesystems inside the VM", "VM filesystems"},
	{"lxc-snapshots", PVE, Root, None, 20, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/lxc/{vmid}/snapshot", "--output-format", "json"}, "snapshot descriptions", "descriptions, on request"},
	{"qemu-snapshots", PVE, Root, None, 20, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/qemu/{vmid}/snapshot", "--output-format", "json"}, "snapshot descriptions", "descriptions, on request"},
	{"lxc-df", PVE, Root, None, 15, mib, search, argv{"/usr/sbin/pct", "exec", "{vmid}", "--", "df", "-P", "-k"}, "mount points inside the container", "a running container's filesystems"},
	{"backups", PVE, Root, Activates, 30, 16 * mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/storage/{storage}/content", "--content", "backup", "--output-format", "json"}, "archives and their notes", "archives"},
	{"images", PVE, Root, Activates, 30, 16 * mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/storage/{storage}/content", "--content", "images", "--output-format", "json"}, "disk images", "orphaned disks of VMs"},
	{"rootdirs", PVE, Root, Activates, 30, 16 * mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/storage/{storage}/content", "--content", "rootdir", "--output-format", "json"}, "container volumes", "orphaned disks of containers"},
	{"certificates", PVE, Root, None, 20, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/certificates/info", "--output-format", "json"}, "certificates; no key", "expiry"},
	{"disks", PVE, Root, None, 30, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/disks/list", "--skipsmart", "1", "--output-format", "json"}, "disks and serial numbers, which are dropped", "which disks there are, without waking one"},
	{"lxc-history", PVE, Root, Cache, 20, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/lxc/{vmid}/rrddata", "--timeframe", "day", "--cf", "AVERAGE", "--output-format", "json"}, "numbers of the last day", "why was it slow?"},
	{"qemu-history", PVE, Root, Cache, 20, mib, zero, argv{"/usr/bin/pvesh", "--noproxy", "get", "/nodes/{node}/qemu/{vmid}/rrddata", "--timeframe", "day", "--cf", "AVERAGE", "--output-format", "json"}, "numbers of the last day", "why was it slow?"},

	// Inside a guest, through pct exec or the guest agent: the runtime's ps, inspect and
	// version alone, with a pinned template. No shell stands between.
	{"lxc-docker-ps", PVE, Root, None, 20, 8 * mib, zero, argv{"/usr/sbin/pct", "exec", "{vmid}", "--", "docker", "--host", "unix:///var/run/docker.sock", "ps", "-a", "--no-trunc", "--format", psTemplate}, "containers, images, ports, Compose labels", "containers in a container"},
	{"lxc-docker-inspect", PVE, Root, None, 25, 8 * mib, search, argv{"/usr/sbin/pct", "exec", "{vmid}", "--", "docker", "--host", "unix:///var/run/docker.sock", "container", "inspect", "--format", inspectTemplate, "{container}"}, "state, mounts, networks; no environment, command or label map", "a stack's containers"},
	{"lxc-docker-version", PVE, Root, None, 20, mib, search, argv{"/usr/sbin/pct", "exec", "{vmid}", "--", "docker", "--host", "unix:///var/run/docker.sock", "version", "--format", versionTemplate}, "versions", "which half of Docker is missing?"},
	{"lxc-docker-client", PVE, Root, None, 15, 64 * kib, zero, argv{"/usr/sbin/pct", "exec", "{vmid}", "--", "docker", "--version"}, "the client's version", "is Docker installed? This asks no daemon, so it cannot start one"},
	{"lxc-podman-ps", PVE, Root, None, 20, 8 * mib, zero, argv{"/usr/sbin/pct", "exec", "{vmid}", "--", "podman", "ps", "-a", "--no-trunc", "--format", podmanPsTemplate}, "as lxc-docker-ps", "containers in a container"},
	{"lxc-podman-inspect", PVE, Root, None, 25, 8 * mib, exits{codes: []int{0, 125}}, argv{"/usr/sbin/pct", "exec", "{vmid}", "--", "podman", "container", "inspect", "--format", podmanInspectTemplate, "{container}"}, "as lxc-docker-inspect", "a stack's containers"},
	{"lxc-mounts", PVE, Root, None, 15, mib, zero, argv{"/usr/sbin/pct", "exec", "{vmid}", "--", "grep", "-oE", mountInfoPattern, "/proc/self/mountinfo"}, "mount points inside the container and what lies there; no sources, no mount options", "on which volume of the guest does a container's data lie?"},
	{"qemu-docker-ps", PVE, Root, Agent, 25, 16 * mib, zero, argv{"/usr/sbin/qm", "guest", "exec", "{vmid}", "--timeout", "10", "--", "docker", "--host", "unix:///var/run/docker.sock", "ps", "-a", "--no-trunc", "--format", psTemplate}, "as lxc-docker-ps", "containers in a VM"},
	{"qemu-docker-inspect", PVE, Root, Agent, 25, 16 * mib, zero, argv{"/usr/sbin/qm", "guest", "exec", "{vmid}", "--timeout", "10", "--", "docker", "--host", "unix:///var/run/docker.sock", "container", "inspect", "--format", inspectTemplate, "{container}"}, "as lxc-docker-inspect", "a stack's containers"},
	{"qemu-podman-ps", PVE, Root, Agent, 25, 16 * mib, zero, argv{"/usr/sbin/qm", "guest", "exec", "{vmid}", "--timeout", "10", "--", "podman", "ps", "-a", "--no-trunc", "--format", podmanPsTemplate}, "as lxc-docker-ps", "containers in a VM"},
	{"qemu-podman-inspect", PVE, Root, Agent, 25, 16 * mib, zero, argv{"/usr/sbin/qm", "guest", "exec", "{vmid}", "--timeout", "10", "--", "podman", "container", "inspect", "--format", podmanInspectTemplate, "{container}"}, "as lxc-docker-inspect", "a stack's containers"},

	// Docker hosts, reached directly: the same three.
	{"host-services", Docker, Any, None, 10, mib, files, argv{"/bin/grep", "-rsl", "--include=cgroup.procs", ".", "/sys/fs/cgroup/system.slice"}, "names of the host's service groups", "does a Docker daemon run? Asking must not start one"},
	{"host-docker-ps", Docker, Root, None, 20, 8 * mib, zero, argv{"docker", "ps", "-a", "--no-trunc", "--format", psTemplate}, "as lxc-docker-ps", "containers of the host"},
	{"host-docker-inspect", Docker, Root, None, 25, 8 * mib, search, argv{"docker", "container", "inspect", "--format", inspectTemplate, "{container}"}, "as lxc-docker-inspect", "a stack's containers"},
	{"host-docker-version", Docker, Root, None, 20, mib, search, argv{"docker", "version", "--format", versionTemplate}, "versions", "which half of Docker is missing?"},
	{"host-docker-client", Docker, Any, None, 10, 64 * kib, zero, argv{"docker", "--version"}, "the client's version", "is Docker installed? This asks no daemon, so it cannot start one"},
	{"host-podman-ps", Docker, Any, None, 20, 8 * mib, zero, argv{"podman", "ps", "-a", "--no-trunc", "--format", podmanPsTemplate}, "as lxc-docker-ps", "containers of the host"},
	{"host-podman-inspect", Docker, Any, None, 25, 8 * mib, exits{codes: []int{0, 125}}, argv{"podman", "container", "inspect", "--format", podmanInspectTemplate, "{container}"}, "as lxc-docker-inspect", "a stack's containers"},

	// Any host.
	{"probe", Both, Any, None, 5, 64 * kib, zero, argv{"/bin/echo", "pvelens-probe"}, "nothing", "does the login shell print text of its own?"},
	{"lock-probe", Both, Any, None, 5, kib, zero, argv{"/bin/true", "lock-probe"}, "nothing", "client only: a gate refuses it, so exit 0 means that there is no lock"},
	{"gate-version", Both, Any, None, 5, 64 * kib, zero, argv{GatePath, "--version"}, "the gate's version and the table's hash", "is the gate's table the same as ours?"},
}
