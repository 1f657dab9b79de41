package allowlist

// The long words of the table: patterns for grep -E and templates for the
// container runtimes. Like allowlist.go this file is data only.

// keysPattern lists the keys of a guest configuration whose values may travel.
// With grep -o a key whose value may be a secret (args, cipassword, description,
// env, sshkeys, …) is sent as its bare name: that it is set is known, its value
// is not. An lxc.mount.entry ends before its options, where passwords stand.
const keysPattern = `^(\[.*|(acpi|agent|arch|balloon|bios|boot|bootdisk|cdrom|cicustom|cores|cpu|cpulimit|cpuunits|delete|features|fleecing-images|hookscript|hostname|hotplug|hugepages|kvm|lock|machine|memory|meta|name|numa|onboot|ostype|parent|protection|rootfs|runningmachine|scsihw|snapstate|snaptime|sockets|startup|swap|tags|template|unprivileged|vcpus|vga|vmstate|vmstatestorage|amd-sev|intel-tdx|(dev|efidisk|hostpci|ide|ipconfig|mp|net|parallel|sata|scsi|serial|tpmstate|unused|usb|virtio|virtiofs)[0-9]+):.*|(args|ivshmem|cipassword|description|entrypoint|env|smbios1|sshkeys):|lxc\.(apparmor\.(profile|allow_nesting)|cap\.(drop|keep)|cgroup2?\.devices\.(allow|deny)|idmap|mount\.auto|net\.[0-9]+\.(type|link|hwaddr|ipv[46]\.(address|gateway))|seccomp\.profile)[[:space:]]*[:=].*|lxc\.mount\.entry[[:space:]]*[:=][[:space:]]*[^[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+[^[:space:]]+|lxc\.(environment|include|init\.cmd|hook\.[a-z-]+|prlimit\.[a-z]+|sysctl\.[a-z._]+)[a-z.]*[[:space:]]*[:=])`

// configKeysPattern lists the keys of storage.cfg, jobs.cfg, replication.cfg and
// the HA and mapping files whose values may travel. Passwords of storage
// plugins, mail addresses, comments and notes templates are not among them.
const configKeysPattern = `^[A-Za-z0-9][A-Za-z0-9._-]*(:[[:space:]].*)?$|^[[:space:]]+(affinity|all|base|blocksize|compress|content|content-dirs|data-pool|datastore|disable|dow|dumpdir|enabled|exclude|exclude-path|export|failback|fleecing|format|fs-name|group|is_mountpoint|krbd|live-migration-capable|map|max-protected-backups|max_relocate|max_restart|maxfiles|mdev|mode|mountpoint|namespace|node|nodes|nofailback|path|pool|portal|prune-backups|protected|rate|remove|remove_job|repeat-missed|resources|restricted|saferemove|schedule|server|server2|share|shared|snapshot-as-volume-chain|source|sparse|starttime|state|storage|strict|subdir|target|thinpool|vgname|vmid|volume)([[:space:]]|$)`

// corosyncPattern leaves out totem's inline key.
const corosyncPattern = `^[[:space:]]*((totem|quorum|device|net|nodelist|node|interface)[[:space:]]*\{|\}|(cluster_name|config_version|two_node|wait_for_all|last_man_standing|auto_tie_breaker|expected_votes|provider|model|votes|host|algorithm|name|nodeid|quorum_votes|ring[0-7]_addr|linknumber)[[:space:]]*:)`

// datacenterPattern leaves out http_proxy, which holds a password.
const datacenterPattern = `^(crs|ha|migration|replication|max_workers|fencing|next-id|tag-style|registered-tags|mac_prefix|bwlimit):`

const vzdumpPattern = `^(storage|mode|prune-backups|maxfiles|exclude-path|stdexcludes|fleecing|remove):`

const startupPattern = `^startall-onboot-delay:`

const sdnPattern = `^[a-z]+: .*$|^[[:space:]]+(vnet|zone|gateway|dhcp-range|tag|bridge|alias|type|nodes|dhcp)([[:space:]]|$)`

// mountsPattern ends before the options, where user names stand.
const mountsPattern = `^[^[:space:]]+ [^[:space:]]+ [^[:space:]]+ r[wo]`

// mountInfoPattern takes the first five fields of a line: two numbers, the device,
// the directory on it and the mount point. The options and the source, where user
// names stand, come after them.
const mountInfoPattern = `^[0-9]+ [0-9]+ [0-9]+:[0-9]+ [^ ]+ [^ ]+`

// aptPattern never matches a line with an @: credentials in an address have one,
// also that of a second address on the same line.
const aptPattern = `^(deb|URIs:) [^@]*proxmox\.com[^@]*$|^(Types|Enabled|Suites|Components): .*`

const backupLogPattern = `^.{19} (INFO: (Starting|Finished) Backup of VM.*|INFO: (backup mode|archive file size).*|(ERROR|WARN): .{0,300})`

const packageFormat = `${Package}\t${Version}\t${db:Status-Abbrev}\n`

// psTemplate projects docker ps (20.10 and later) to fields that hold no
// secret: no command, no environment, and of the labels only Compose's own.
const psTemplate = `{"id":{{json .ID}},"names":{{json .Names}},"image":{{json .Image}},"state":{{json .State}},"status":{{json .Status}},"created":{{json .CreatedAt}},"ports":{{json .Ports}},"networks":{{json .Networks}},"project":{{json (.Label "com.docker.compose.project")}},"service":{{json (.Label "com.docker.compose.service")}},"number":{{json (.Label "com.docker.compose.container-number")}},"oneoff":{{json (.Label "com.docker.compose.oneoff")}},"config_files":{{json (.Label "com.docker.compose.project.config_files")}},"working_dir":{{json (.Label "com.docker.compose.project.working_dir")}},"compose_version":{{json (.Label "com.docker.compose.version")}}}`

// inspectTemplate projects docker container inspect in the same way.
const inspectTemplate = `{"id":{{json .ID}},"name":{{json .Name}},"created":{{json .Created}},"image":{{json .Config.Image}},"image_id":{{json .Image}},"status":{{json .State.Status}},"exit_code":{{json .State.ExitCode}},"oom_killed":{{json .State.OOMKilled}},"dead":{{json .State.Dead}},"error":{{json (printf "%.300s" .State.Error)}},"started":{{json .State.StartedAt}},"finished":{{json .State.FinishedAt}},"restarts":{{json .RestartCount}},"health":{{if .State.Health}}{"status":{{json .State.Health.Status}},"streak":{{json .State.Health.FailingStreak}},"log":[{{range $i, $l := .State.Health.Log}}{{if $i}},{{end}}{"end":{{json $l.End}},"exit":{{json $l.ExitCode}}}{{end}}]}{{else}}null{{end}},"restart_policy":{{json .HostConfig.RestartPolicy.Name}},"restart_max":{{json .HostConfig.RestartPolicy.MaximumRetryCount}},"auto_remove":{{json .HostConfig.AutoRemove}},"privileged":{{json .HostConfig.Privileged}},"readonly_rootfs":{{json .HostConfig.ReadonlyRootfs}},"user":{{json .Config.User}},"log_driver":{{json .HostConfig.LogConfig.Type}},"memory":{{json .HostConfig.Memory}},"nano_cpus":{{json .HostConfig.NanoCPUs}},"cpu_quota":{{json .HostConfig.CPUQuota}},"cpu_period":{{json .HostConfig.CPUPeriod}},"network_mode":{{json .HostConfig.NetworkMode}},"pid_mode":{{json .HostConfig.PidMode}},"cap_add":{{json .HostConfig.CapAdd}},"exposed":{{json .Config.ExposedPorts}},"bindings":{{json .HostConfig.PortBindings}},"ports":{{json .NetworkSettings.Ports}},"networks":{ {{$c := ""}}{{range $n, $e := .NetworkSettings.Networks}}{{$c}}{{$c = ","}}{{json $n}}:{"id":{{json $e.NetworkID}},"ip":{{json $e.IPAddress}},"prefix":{{json $e.IPPrefixLen}},"ip6":{{json $e.GlobalIPv6Address}},"prefix6":{{json $e.GlobalIPv6PrefixLen}},"gw":{{json $e.Gateway}},"mac":{{json $e.MacAddress}}}{{end}} },"mounts":[{{range $i, $m := .Mounts}}{{if $i}},{{end}}{"type":{{json $m.Type}},"name":{{json $m.Name}},"src":{{json $m.Source}},"dst":{{json $m.Destination}},"rw":{{json $m.RW}},"driver":{{json $m.Driver}}}{{end}}],"tmpfs":{{json .HostConfig.Tmpfs}},"compose":{"project":{{json (index .Config.Labels "com.docker.compose.project")}},"service":{{json (index .Config.Labels "com.docker.compose.service")}},"number":{{json (index .Config.Labels "com.docker.compose.container-number")}},"oneoff":{{json (index .Config.Labels "com.docker.compose.oneoff")}},"config_files":{{json (index .Config.Labels "com.docker.compose.project.config_files")}},"working_dir":{{json (index .Config.Labels "com.docker.compose.project.working_dir")}},"version":{{json (index .Config.Labels "com.docker.compose.version")}},"depends_on":{{json (index .Config.Labels "com.docker.compose.depends_on")}},"config_hash":{{json (index .Config.Labels "com.docker.compose.config-hash")}}}}`

const versionTemplate = `{"client":{{json .Client.Version}},"client_api":{{json .Client.APIVersion}},"server":{{if .Server}}{"version":{{json .Server.Version}},"api":{{json .Server.APIVersion}},"min_api":{{json .Server.MinAPIVersion}},"os":{{json .Server.Os}},"arch":{{json .Server.Arch}},"kernel":{{json .Server.KernelVersion}}}{{else}}null{{end}}}`

// podmanPsTemplate and podmanInspectTemplate are the twins for podman, whose
// field names differ.
const podmanPsTemplate = `{"id":{{json .ID}},"names":{{json .Names}},"image":{{json .Image}},"state":{{json .State}},"status":{{json .Status}},"created":{{json .CreatedAt}},"ports":{{json .Ports}},"networks":{{json .Networks}},"pod":{{json .Pod}},"exit":{{json .ExitCode}},"project":{{json (index .Labels "com.docker.compose.project")}},"service":{{json (index .Labels "com.docker.compose.service")}},"number":{{json (index .Labels "com.docker.compose.container-number")}}}`

const podmanInspectTemplate = `{"id":{{json .ID}},"name":{{json .Name}},"created":{{json .Created}},"image":{{json .ImageName}},"image_id":{{json .Image}},"status":{{json .State.Status}},"exit_code":{{json .State.ExitCode}},"oom_killed":{{json .State.OOMKilled}},"dead":{{json .State.Dead}},"error":{{json (printf "%.300s" .State.Error)}},"started":{{json .State.StartedAt}},"finished":{{json .State.FinishedAt}},"restarts":{{json .RestartCount}},"health":{{if .State.Health}}{"status":{{json .State.Health.Status}},"streak":{{json .State.Health.FailingStreak}},"log":[{{range $i, $l := .State.Health.Log}}{{if $i}},{{end}}{"end":{{json $l.End}},"exit":{{json $l.ExitCode}}}{{end}}]}{{else}}null{{end}},"restart_policy":{{json .HostConfig.RestartPolicy.Name}},"restart_max":{{json .HostConfig.RestartPolicy.MaximumRetryCount}},"auto_remove":{{json .HostConfig.AutoRemove}},"privileged":{{json .HostConfig.Privileged}},"readonly_rootfs":{{json .HostConfig.ReadonlyRootfs}},"user":{{json .Config.User}},"log_driver":{{json .HostConfig.LogConfig.Type}},"memory":{{json .HostConfig.Memory}},"nano_cpus":{{json .HostConfig.NanoCpus}},"cpu_quota":{{json .HostConfig.CpuQuota}},"cpu_period":{{json .HostConfig.CpuPeriod}},"network_mode":{{json .HostConfig.NetworkMode}},"pid_mode":{{json .HostConfig.PidMode}},"cap_add":{{json .HostConfig.CapAdd}},"bindings":{{json .HostConfig.PortBindings}},"ports":{{json .NetworkSettings.Ports}},"networks":{ {{$c := ""}}{{range $n, $e := .NetworkSettings.Networks}}{{$c}}{{$c = ","}}{{json $n}}:{"id":{{json $e.NetworkID}},"ip":{{json $e.IPAddress}},"prefix":{{json $e.IPPrefixLen}},"ip6":{{json $e.GlobalIPv6Address}},"prefix6":{{json $e.GlobalIPv6PrefixLen}},"gw":{{json $e.Gateway}},"mac":{{json $e.MacAddress}}}{{end}} },"mounts":[{{range $i, $m := .Mounts}}{{if $i}},{{end}}{"type":{{json $m.Type}},"name":{{json $m.Name}},"src":{{json $m.Source}},"dst":{{json $m.Destination}},"rw":{{json $m.RW}},"driver":{{json $m.Driver}}}{{end}}],"tmpfs":{{json .HostConfig.Tmpfs}},"pod":{{json .Pod}},"compose":{"project":{{json (index .Config.Labels "com.docker.compose.project")}},"service":{{json (index .Config.Labels "com.docker.compose.service")}},"number":{{json (index .Config.Labels "com.docker.compose.container-number")}},"config_files":{{json (index .Config.Labels "com.docker.compose.project.config_files")}},"working_dir":{{json (index .Config.Labels "com.docker.compose.project.working_dir")}},"podman_project":{{json (index .Config.Labels "io.podman.compose.project")}},"podman_version":{{json (index .Config.Labels "io.podman.compose.version")}}}}`
