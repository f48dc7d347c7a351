#!/bin/sh
# 10-kqueue, kqueue_test and the smoke test on another system, in a virtual machine: README.md beside this file.
#
#   OS=freebsd [IMAGE=disk] [KEY=file] [BUILD=build] vm.sh [QEMU's arguments...]          `make vm`
#
# Fetches the system's official image, after a yes (DEPS=yes is one) and only if it has the checksum below; puts a disk over it
# that is thrown away; gives the machine an ssh key that is made for this run, on a second disk (cloud-init's NoCloud); boots it
# under QEMU, whose only way in is a port of 127.0.0.1; sends HEAD there; builds and runs the tests; and turns it off. What the
# tests print stays in build/vm/OS.txt. Status 0 if both passed, 1 if not or if they could not be run.
# shellcheck disable=SC2016 # it is the guest that shall look at $(uname -r)
set -u

say() { echo "vm: $*"; }
die() { echo "vm: $*" >&2; exit 1; }

# url, sha256, size: of an image that takes a key from outside. disk: to which size it is made larger. ready: succeeds once the
# first boot is over, and prints something that the next boot changes. prepare: installs make, a compiler and Python, as root.
url='' sha256='' disk='' prepare=true ready='sysctl -n kern.boottime' make=gmake
: "${OS:=freebsd}"
case $OS in
    freebsd)
        url=https://download.freebsd.org/releases/VM-IMAGES/15.1-RELEASE/amd64/Latest/FreeBSD-15.1-RELEASE-amd64-BASIC-CLOUDINIT-ufs.qcow2.xz
        sha256=e4ca4db889f8559c9b9dfcacc70405c038476f4b6d41649b152d3809a2ed9e1f size='665 MB' disk=16G
        prepare='env ASSUME_ALWAYS_YES=yes pkg install -y gmake python3'
        ready="test ! -e /firstboot && $ready" off='shutdown -p now' ;;
    netbsd)
        prepare='env PKG_PATH=https://cdn.NetBSD.org/pub/pkgsrc/packages/NetBSD/amd64/$(uname -r)/All /usr/sbin/pkg_add -U gmake python312'
        off='/sbin/shutdown -p now' ;;
    openbsd) prepare='pkg_add -I gmake python3' off='/sbin/halt -p' ;;
    linux) ready='cat /proc/sys/kernel/random/boot_id' make=make off=poweroff ;; # what this script was tried with
    *) die "there is no $OS. There are: freebsd, netbsd, openbsd, linux" ;;
esac

folder=${BUILD:-build}/vm said=${BUILD:-build}/vm/$OS.txt image=${IMAGE-} key=${KEY-} missing=''
for tool in qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils genisoimage:genisoimage ssh:openssh-client \
    ssh-keygen:openssh-client git:git curl:curl xz:xz-utils; do
    command -v "${tool%:*}" >/dev/null || missing="$missing, ${tool%:*} (Debian: ${tool#*:})"
done
[ -z "$missing" ] || die "missing here: ${missing#, }"
mkdir -p "$folder" && work=$(mktemp -d "$folder/run.XXXXXX") || exit 1
machine=''
trap 'if [ -n "$machine" ]; then kill "$machine" 2>/dev/null; fi; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# ---- the image: it is there whole, and as it was pinned, or not at all

consents() { # DEPS says it, or somebody at a terminal. Silence is no yes.
    if [ "${DEPS:-ask}" != ask ] || ! [ -t 0 ]; then [ "${DEPS:-ask}" = yes ]; return; fi
    printf 'Fetch %s, %s? [y/N] ' "$url" "$size"
    read -r answer
    case $answer in [yY]*) return 0 ;; *) return 1 ;; esac
}

if [ -z "$image" ]; then
    [ -n "$url" ] || die "no image of $OS can be fetched: tests/bsd/README.md says how to make one"
    image=${url##*/} image=$folder/${image%.xz}
    if ! [ -e "$image" ]; then
        consents || die "$url is not here; DEPS=yes fetches it, $size"
        say "fetching $url"
        curl -fsSL -o "$work/image.xz" "$url" || die "$url cannot be fetched"
        echo "$sha256  $work/image.xz" | sha256sum --check --quiet - || die "$url has not the sha256 $sha256: not used"
        xz -d "$work/image.xz" || die "$url cannot be unpacked"
        mv "$work/image" "$image" || exit 1
    fi
fi

# ---- the machine

seed=''
if [ -z "$key" ]; then
    key=$work/key seed="-drive file=$work/seed.iso,media=cdrom,readonly=on,format=raw"
    ssh-keygen -q -t ed25519 -N '' -f "$key" || die "no key can be made"
    printf 'instance-id: quest\nlocal-hostname: quest\n' >"$work/meta-data"
    cat >"$work/user-data" <<END
#cloud-config
ssh_authorized_keys:
  - $(cat "$key.pub")
runcmd:
  - mkdir -p /root/.ssh
  - chmod 700 /root/.ssh
  - echo "$(cat "$key.pub")" > /root/.ssh/authorized_keys
  - chmod 600 /root/.ssh/authorized_keys
  - echo "PermitRootLogin prohibit-password" >> /etc/ssh/sshd_config
  - sysrc sshd_enable=YES || true
  - service sshd restart || service ssh restart
END
    genisoimage -quiet -o "$work/seed.iso" -V cidata -r -J "$work/user-data" "$work/meta-data" || die "no seed can be made"
fi
kind=raw
if [ "$(head -c 3 "$image")" = QFI ]; then kind=qcow2; fi
# shellcheck disable=SC2086 # no size is no word
qemu-img create -q -f qcow2 -F $kind -b "$(realpath "$image")" "$work/disk" $disk || die "no disk over $image"
port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')

guest() { # COMMAND
    ssh -F /dev/null -o BatchMode=yes -o ConnectTimeout=10 -o LogLevel=ERROR -o IdentitiesOnly=yes \
        -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile="$work/known_hosts" -i "$key" -p "$port" root@127.0.0.1 "$1"
}

say "booting $image"
# Within a virtual machine, KVM may refuse to set what is taken from the processor here. The first -accel that works is taken.
# shellcheck disable=SC2086 # the seed is two words, or none
qemu-system-x86_64 "$@" -accel kvm -accel tcg -cpu max,-arch-capabilities -m 1024 -smp 2 -display none -monitor none \
    -device virtio-rng-pci -device virtio-net-pci,netdev=net0 -netdev "user,id=net0,hostfwd=tcp:127.0.0.1:$port-:22" \
    -drive "file=$work/disk,if=virtio,format=qcow2" $seed -serial "file:$work/console" </dev/null &
machine=$!

# Without KVM it takes minutes, and a first boot may end with a second one: what it says has to be the same some time later.
before='' deadline=$(($(date +%s) + 1800))
until now=$(guest "$ready" </dev/null 2>/dev/null) && [ "$now" = "$before" ]; do
    if ! kill -0 $machine 2>/dev/null || [ "$(date +%s)" -gt $deadline ]; then
        tail -c 2000 "$work/console" >&2
        die "it does not answer by ssh; above is the end of its console"
    fi
    if [ -n "$now" ]; then sleep 15; else sleep 2; fi
    before=$now
done

say "installing what is needed"
guest "$prepare" </dev/null || die "what is needed cannot be installed"
say "sending HEAD, building and testing"
git archive --format=tar HEAD | guest 'rm -rf quest && mkdir quest && cd quest && tar xf -' || die "the tree did not arrive"
guest "cd quest && make=$make sh -s" <<'END' 2>&1 | tee "$said" | grep -v '^ok '
PATH=$PATH:/usr/pkg/bin:/usr/local/bin
uname -a
$make DEPS=skip build/bin/10-kqueue build/bin/kqueue_test </dev/null || exit 1
for python in python3 python3.13 python3.12; do command -v $python >/dev/null && break; done
build/bin/kqueue_test </dev/null; kqueue=$?
$python -m tests.bsd.test_smoke </dev/null 2>&1; smoke=$?
echo "# kqueue_test: status $kqueue; smoke test of 10-kqueue: status $smoke"
END
say "turning it off"
guest "$off" </dev/null
tries=120
while kill -0 $machine 2>/dev/null && [ $((tries -= 1)) -gt 0 ]; do sleep 1; done
[ $tries -gt 0 ] || say "no end after two minutes: killed"
grep -qx '# kqueue_test: status 0; smoke test of 10-kqueue: status 0' "$said" || die "NOT passed; $said has it all"
say "passed; $said has it all"
