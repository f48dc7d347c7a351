#!/bin/sh
# As root: installs these Debian packages.  install.sh PACKAGE...
# One that cannot be had takes no other with it. No service of theirs is started, now or at boot: peers are measured, not run.
set -u
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C # Ubuntu's needrestart would restart the user's services
policy=/usr/sbin/policy-rc.d known=''
[ -e $policy ] || { trap 'rm -f $policy' EXIT && trap 'exit 130' HUP INT TERM; printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy; }
get() { apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@" </dev/null; }
echo "apt-get update, then install: $# packages and what they need"
apt-get -qq update || echo "  going on with the lists that are here"
for package; do
    if apt-cache show "$package" >/dev/null 2>&1; then known="$known $package"; else echo "  $package: not in this release"; fi
done
# shellcheck disable=SC2086 # a list of words
get $known || for package in $known; do get "$package" || echo "  $package: not installed"; done
# shellcheck disable=SC2086
for name in $(dpkg -L $known 2>/dev/null | sed -n 's,^/etc/init.d/,,p; s,.*/lib/systemd/system/\([^/]*\.\(service\|timer\|socket\)\)$,\1,p'); do
    update-rc.d "$name" disable
    systemctl disable --now "$name"
done >/dev/null 2>&1
