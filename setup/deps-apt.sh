# The part of deps.sh that installs Debian packages; deps.sh reads it in once it may.
# shellcheck shell=sh
# shellcheck disable=SC2154 # $become, $log, $root, $apt_packages and say, count, any_file are deps.sh's
# shellcheck disable=SC2086 # $known, $unknown and $become are lists of words

# NEEDRESTART_SUSPEND: Ubuntu's needrestart would restart the user's services.
apt() {
    $become env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C apt-get \
        -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" </dev/null
}

update_lists() {
    say "apt-get update ..."
    apt -q update >>"$log" 2>&1 || say "  failed, going on with the lists that are here: $(reason)"
}

reason() { # the last complaint in the log
    text=$(grep -E '^(E:|Err:|dpkg: error|sudo:)' "$log" | tail -n 1)
    say "${text:-no reason given} (all of it: $log)"
}

complained() { grep -Eq "$1" "$log"; }

# Splits $apt_packages into $known and $unknown to this release.
sort_out() {
    known='' unknown=''
    have=$(LC_ALL=C apt-cache policy $apt_packages 2>/dev/null | sed -n \
        -e '/^[^ ].*:$/{s/:$//;h;}' -e '/^  Candidate: (none)/d' -e '/^  Candidate: /{g;p;}')
    for package in $apt_packages; do
        if printf '%s\n' "$have" | grep -qxF "$package"; then known="$known $package"
        else unknown="$unknown $package"
        fi
    done
}

# No lists at all, or something unknown and lists older than a day: only then they are read anew.
lists_are_stale() {
    lists=$root/var/lib/apt/lists
    any_file "$lists"/*_Packages* || return 0
    [ -n "$unknown" ] && [ -z "$(find "$lists" -maxdepth 0 -mtime -1)" ]
}

# Reads apt-get's lines; $1: how many packages. Each is fetched, unpacked and set up: three steps.
progress() {
    steps=$(($1 * 3)) done=0 quarters=0
    while read -r word _; do
        case $word in Get:* | Unpacking | Setting) done=$((done + 1)) ;; *) continue ;; esac
        [ "$done" -le "$steps" ] || done=$steps # what was there already is unpacked over
        if [ -t 1 ]; then
            printf '\r  %d %% ' $((done * 100 / steps))
        elif [ $((done * 4 / steps)) -gt "$quarters" ]; then
            quarters=$((done * 4 / steps))
            say "  $((quarters * 25)) %"
        fi
    done
    if [ -t 1 ]; then printf '\r          \r'; fi
}

install_packages() { # PACKAGE...
    total=$(apt -q -s install --no-install-recommends "$@" 2>/dev/null | grep -c '^Inst ')
    say "installing $(count "$@") packages, $total with what they need ..."
    rm -f build/deps.failed
    { apt -q -y install --no-install-recommends "$@" 2>&1 || : >build/deps.failed; } |
        tee -a "$log" | progress "$((total > 0 ? total : 1))"
    if [ ! -e build/deps.failed ]; then return 0; fi
    rm -f build/deps.failed
    return 1
}

# Tries together; mends what can be mended and tries again; then one by one, so that a package that
# cannot be installed takes no other with it.
install_all() {
    if [ "$become" = sudo ] && ! sudo -v; then say "sudo did not let us"; return 0; fi
    sort_out
    if lists_are_stale; then update_lists; sort_out; fi
    for package in $unknown; do say "  $package: not in this release; skipped"; done
    if [ -z "$known" ] || install_packages $known; then return 0; fi
    say "  failed: $(reason)"
    if complained 'dpkg was interrupted'; then # by a kill: finish what that run began
        say "dpkg --configure -a ..."
        $become env DEBIAN_FRONTEND=noninteractive dpkg --configure -a </dev/null >>"$log" 2>&1
    elif complained 'Failed to fetch|Unable to fetch|404'; then # the lists name what is gone
        update_lists
    fi
    : >>"$log"
    if install_packages $known; then return 0; fi
    say "  failed again: $(reason)"
    if complained 'Failed to fetch|Unable to fetch|Could not get lock|^sudo:'; then return 0; fi
    for package in $known; do
        apt -q -y install --no-install-recommends "$package" >>"$log" 2>&1 ||
            say "  $package: not installed: $(reason)"
    done
}

# ---- peers ---------------------------------------------------------------------------------------

policy=$root/usr/sbin/policy-rc.d
mark='deps.sh of the web server book'

# Debian starts a server when it is installed, and at each boot. While policy-rc.d answers 101 it is
# not started now; afterwards, also when this is stopped, the boot links of those this run installed
# are taken away.
install_peers() {
    if [ -e "$policy" ] && ! grep -qs "$mark" "$policy"; then
        if "$policy" nginx start >/dev/null 2>&1; [ $? -ne 101 ]; then
            say "peers not installed: your own $policy lets services start; move it away meanwhile"
            return 0
        fi
    elif ! write_policy; then
        say "peers not installed: cannot write $policy"
        return 0
    fi
    trap leave_no_service EXIT
    trap 'exit 130' HUP INT TERM
    install_all
    leave_no_service
}

# If we are killed it stays, but without us it prevents nothing.
write_policy() {
    $become tee "$policy" >/dev/null <<EOF && $become chmod 755 "$policy"
#!/bin/sh
# $mark: no service starts while it installs.
test -d /proc/$$ || exit 0
exit 101
EOF
}

# A peer's services, timers and sockets begin with the name of its package; but for one.
leave_no_service() {
    trap - EXIT HUP INT TERM
    for package in $apt_packages; do
        if [ "$package" = openssh-server ]; then package=ssh; fi
        if [ -e "$root/etc/init.d/$package" ]; then
            $become update-rc.d "$package" disable >>"$log" 2>&1
        fi
        for link in "$root"/etc/systemd/system/*.wants/"$package"[-.@]*; do
            if [ -h "$link" ]; then $become rm -f "$link"; fi
        done
    done
    if grep -qs "$mark" "$policy"; then $become rm -f "$policy"; fi
}
