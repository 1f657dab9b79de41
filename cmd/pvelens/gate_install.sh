#!/bin/sh
# pvelens: puts the node's side of the lock on this machine. Read it, copy the
# gate here, and run it as root:
#
#   sh gate-install.sh --gate ./pvelens-gate --key 'ssh-ed25519 AAAA... you@desk'
#   sh gate-install.sh --remove
#
# --key may be given several times; --from '10.0.0.5,10.0.1.0/24' admits the keys
# from these addresses only. It makes, and --remove takes away:
#
#   user pvelens                         no password, home /, shell /bin/sh, and in
#                                        group www-data, which may read /etc/pve
#   /usr/local/libexec/pvelens-gate      the gate
#   /etc/ssh/pvelens_authorized_keys     the keys; root's, so the user cannot add one
#   /etc/ssh/sshd_config.d/pvelens.conf  for this user: those keys, the gate, no more
#   /etc/sudoers.d/pvelens               the user may start the gate as root
#
# sshd and visudo check the files before they count. If a step fails, everything
# is put back as it was. Running it again changes only what differs.
set -eu
umask 022
PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL

ALLOWLIST_SHA256='' # if set, the gate must hold this table (pvelens version prints it)

user=pvelens
mark='pvelens gate' # the user's comment: only a user with it is ours
gate=/usr/local/libexec/pvelens-gate
keys=/etc/ssh/pvelens_authorized_keys
sshd=/etc/ssh/sshd_config.d/pvelens.conf
sudoers=/etc/sudoers.d/pvelens

say() { printf '%s\n' "$*"; }
die() { printf 'gate-install: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
ours() { [ "$(getent passwd "$user" | cut -d: -f5)" = "$mark" ]; }

usage() {
	sed -n '2,/^set /s/^# \{0,1\}//p' "$0" 2>/dev/null || :
	exit "$1"
}

# put FILE MODE CONTENT-FILE: replaces FILE in one step and remembers the old one.
put() {
	if [ -f "$1" ] && [ ! -L "$1" ] && cmp -s "$3" "$1" && [ "$(stat -c %u:%g:%a "$1")" = "0:0:$2" ]; then
		say "same     $1"
		return
	fi
	[ ! -e "$1" ] || cp -p "$1" "$work/old.${1##*/}"
	touched="$touched $1"
	rm -f "$1.pvelens-new"
	install -o root -g root -m "0$2" "$3" "$1.pvelens-new"
	mv -f "$1.pvelens-new" "$1"
	say "written  $1"
}

# undo puts back what put and the user's steps changed; it runs unless all is done.
undo() {
	status=$?
	trap - EXIT
	if [ "$finished" = no ]; then
		for f in $touched; do
			rm -f "$f.pvelens-new"
			if [ -e "$work/old.${f##*/}" ]; then mv -f "$work/old.${f##*/}" "$f"; else rm -f "$f"; fi
		done
		[ "$made_user" = no ] || userdel -f "$user" >/dev/null 2>&1 || :
		[ "$made_dir" = no ] || rmdir "${gate%/*}" 2>/dev/null || :
		say "nothing is changed: all is as it was" >&2
		[ "$status" -ne 0 ] || status=1
	fi
	rm -rf "$work"
	exit "$status"
}

# reload tells a running sshd to read its files again.
reload() {
	if [ -d /run/systemd/system ]; then
		systemctl reload ssh 2>/dev/null || systemctl reload sshd 2>/dev/null || say "note: reload sshd yourself"
	elif [ -s /run/sshd.pid ] && kill -HUP "$(cat /run/sshd.pid)" 2>/dev/null; then
		:
	else
		say "note: sshd does not run here; it reads the files when it starts"
	fi
}

# sshd_check COMMAND...: sshd wants its own directory even for a check.
sshd_check() {
	[ -d /run/sshd ] || mkdir -m 0755 /run/sshd
	/usr/sbin/sshd "$@"
}

remove() {
	for f in "$sshd" "$sudoers" "$keys" "$gate"; do
		if [ -e "$f" ]; then rm -f "$f" && say "removed  $f"; fi
		rm -f "$f.pvelens-new"
		if [ "$f" = "$sshd" ] && has sshd; then reload; fi
	done
	rmdir "${gate%/*}" 2>/dev/null || :
	if ours; then
		if has pkill; then pkill -KILL -u "$user" || :; fi
		userdel -f "$user" >/dev/null 2>&1 && say "removed  user $user"
	elif getent passwd "$user" >/dev/null; then
		say "note: user $user was not made by this script and stays"
	fi
	say "done: nothing of the gate is left"
}

# All is in one function, so that half a script does nothing.
main() {
	source=./pvelens-gate
	list=''
	from=''
	newline='
'
	action=install
	while [ $# -gt 0 ]; do
		case $1 in
		--remove) action=remove ;;
		--gate | --key | --from)
			[ $# -ge 2 ] || die "$1 wants a value"
			case $1 in
			--gate) source=$2 ;;
			--from) from=$2 ;;
			--key)
				case $2 in *"$newline"*) die "--key wants one line" ;; esac
				list="$list$2$newline"
				;;
			esac
			shift
			;;
		-h | --help) usage 0 ;;
		*) die "unknown option $1 (try --help)" ;;
		esac
		shift
	done

	[ "$(id -u)" = 0 ] || die "run it as root"
	if [ "$action" = remove ]; then
		remove
		exit 0
	fi

	# 1. Look before touching anything.
	for p in useradd usermod userdel getent install stat cmp ssh-keygen sshd; do
		has "$p" || die "$p is missing"
	done
	[ -n "$list" ] || die "no --key: which public key may come in?"
	case $from in *[!0-9A-Za-z.:/,*?-]*) die "--from wants addresses, networks or host names with commas" ;; esac
	if getent passwd "$user" >/dev/null && ! ours; then
		die "a user $user exists that this script did not make"
	fi
	[ -f "$source" ] || die "no gate at $source (--gate FILE)"

	work=$(mktemp -d /etc/.pvelens-install.XXXXXX) # not /tmp, which may be noexec
	touched='' made_user=no made_dir=no finished=no
	trap undo EXIT
	trap 'exit 1' HUP INT TERM

	install -m 0755 "$source" "$work/gate"
	version=$("$work/gate" --version) || die "$source does not run here"
	case $version in *\"allowlist_sha256\":*) ;; *) die "$source is no pvelens gate" ;; esac
	case $version in *"$ALLOWLIST_SHA256"*) ;; *) die "$source holds another table than $ALLOWLIST_SHA256" ;; esac
	sshd_check -t || die "sshd_config is not valid as it is"

	# 2. Prepare and check the new files.
	: >"$work/keys"
	printf '%s' "$list" >"$work/list"
	while IFS= read -r key; do
		case $key in
		ssh-ed25519\ * | ssh-rsa\ * | ecdsa-sha2-nistp*\ * | sk-ssh-ed25519@openssh.com\ * | sk-ecdsa-sha2-nistp256@openssh.com\ *) ;;
		*) die "--key wants a public key without options, such as: ssh-ed25519 AAAA... you@desk" ;;
		esac
		printf '%s\n' "$key" >"$work/key"
		ssh-keygen -l -f "$work/key" >/dev/null 2>&1 || die "a --key is no valid public key"
		printf 'restrict,command="%s"%s %s\n' "$gate" "${from:+,from=\"$from\"}" "$key" >>"$work/keys"
	done <"$work/list"

	cat >"$work/sshd" <<-EOF
		# Made by the pvelens gate's install script.
		Match User $user
			AuthorizedKeysFile $keys
			AuthenticationMethods publickey
			ForceCommand $gate
			DisableForwarding yes
			PermitTTY no
			PermitUserRC no
			PermitTunnel no
	EOF
	{
		printf 'Include /etc/ssh/sshd_config\n'
		cat "$work/sshd"
	} >"$work/sshd_config"
	sshd_check -t -f "$work/sshd_config" || die "sshd refuses the new file"

	printf '# Made by the pvelens gate'\''s install script.\n%s ALL=(root) NOPASSWD: %s\n' "$user" "$gate" >"$work/sudoers"
	sudo=no
	if has sudo && has visudo; then
		sudo=yes
		visudo -cqf /etc/sudoers || die "/etc/sudoers is not valid as it is"
		visudo -cqf "$work/sudoers" || die "visudo refuses the new file"
	fi

	# 3. Activate; sshd's file is the last, so that nobody comes in half-way.
	if ! getent passwd "$user" >/dev/null; then
		made_user=yes
		useradd --system --user-group --no-create-home --home-dir / --shell /bin/sh --comment "$mark" "$user"
		usermod -p '*' "$user" # no password, and not locked: sshd without PAM refuses locked users
		say "made     user $user"
	fi
	usermod --shell /bin/sh "$user" >/dev/null
	if getent group www-data >/dev/null; then
		usermod -aG www-data "$user"
	else
		say "note: no group www-data here; this is no Proxmox node"
	fi
	if [ ! -d "${gate%/*}" ]; then
		made_dir=yes
		install -d -o root -g root -m 0755 "${gate%/*}"
	fi
	put "$gate" 755 "$work/gate"
	put "$keys" 644 "$work/keys"
	if [ "$sudo" = yes ]; then
		put "$sudoers" 440 "$work/sudoers"
		visudo -cq || die "visudo refuses the whole"
		sudo -n -l -U "$user" | grep -qF "$gate" || die "/etc/sudoers does not read $sudoers"
	fi
	install -d -o root -g root -m 0755 "${sshd%/*}"
	put "$sshd" 644 "$work/sshd"
	sshd_check -t || die "sshd refuses the whole"
	sshd_check -T -C "user=$user,host=localhost,addr=127.0.0.1,laddr=127.0.0.1,lport=22" >"$work/effective"
	for line in "forcecommand $gate" "authorizedkeysfile $keys" "pubkeyauthentication yes" "permittty no" "disableforwarding yes"; do
		grep -qixF "$line" "$work/effective" || die "sshd does not apply \"$line\": does /etc/ssh/sshd_config begin with Include /etc/ssh/sshd_config.d/*.conf?"
	done
	finished=yes
	reload

	# 4. Say how it stands.
	if grep -Eqi '^(allow|deny)(users|groups) ' "$work/effective"; then
		say "note: sshd_config limits who may log in (AllowUsers, AllowGroups); $user must be among them"
	fi
	if [ "$sudo" = no ]; then
		say "note: sudo is not installed, so that forms which need root are refused; install it and run this again"
	fi
	for dir in /usr/local "${gate%/*}"; do
		[ -z "$(find "$dir" -prune -perm /022 -o -prune ! -user root)" ] || say "note: others than root may write in $dir, and so replace the gate"
	done
	say "done: $(sha256sum "$gate" | cut -d' ' -f1)  $gate"
	say "In the profile: ssh_user = \"$user\", become = \"gate\""
}

main "$@" </dev/null
