#!/bin/sh
# The commands of a made-up machine (made_up_machine.py), those of Debian's base apart: each is a link to this file. What is on
# the machine and what goes wrong there stands in the files of $FAKE; what was done is added to $FAKE/calls.
# shellcheck disable=SC2154 # $FAKE and $DEPS_ROOT are the test's

bin=${0%/*} name=${0##*/}
tab=$(printf '\t')

note() { echo "$*" >>"$FAKE/calls"; }
listed() { grep -qxF -e "$2" "$FAKE/$1"; } # LIST WORD
is() { test -e "$FAKE/$1"; }
fail() { echo "$*" >&2; exit 100; }
link() { test -e "$bin/$1" || ln -s "$bin/provide" "$bin/$1"; }
touch_file() { mkdir -p "${1%/*}" && touch "$1"; }

provide() { # PACKAGE: what it provides appears
    provides=$(grep "^$1$tab" setup/packages.tsv | cut -f 3)
    first=${provides%%|*}
    item=${first#*:}
    case $first in
        command:*) link "$item" ;;
        daemon:*) ln -sf /bin/true "$DEPS_ROOT/usr/sbin/$item" ;;
        header:*) echo "$item" >>"$FAKE/headers" ;;
        python:*) link python3 && echo "$item" >>"$FAKE/modules" ;;
        perl:*) link perl && echo "$item" >>"$FAKE/modules" ;;
        file:*) touch_file "$DEPS_ROOT$item" ;;
        font:*) touch_file "$DEPS_ROOT/usr/share/fonts/truetype/dejavu/$item" ;;
    esac
}

make_reveal() { # FOLDER
    mkdir -p "$1/dist" "$1/plugin" "$1/css"
    for file in dist/reveal.js plugin/a css/b LICENSE; do echo "made up: $file" >"$1/$file"; done
}

python() { # -m pip download ... -d FOLDER ... | -m zipfile -e WHEEL FOLDER | -c PROGRAM MODULE...
    case "$1 $2" in
        '-m pip')
            if ! is network; then fail 'ERROR: no route'; fi
            while [ "$1" != -d ]; do shift; done
            touch "$2/r.whl" ;;
        '-m zipfile')
            touch_file "$5/ziglang/zig"
            make_reveal "$5/sphinx_revealjs/_static/revealjs" ;;
        *)
            shift 2
            printf ' '
            for module in "$@"; do if listed modules "$module"; then printf '%s ' "$module"; fi; done
            echo ;;
    esac
}

npm() { # install ... --prefix FOLDER ...
    if ! is network; then fail 'npm ERR! no route'; fi
    while [ "$1" != --prefix ]; do shift; done
    make_reveal "$2/node_modules/reveal.js"
}

apt_cache() { # policy PACKAGE...
    shift
    for package in "$@"; do
        if listed unknown "$package"; then candidate='(none)'; else candidate=1.0; fi
        printf '%s:\n  Installed: (none)\n  Candidate: %s\n' "$package" "$candidate"
    done
}

apt_get() {
    note "apt-get $* [$DEBIAN_FRONTEND]"
    simulate=no
    case " $* " in
        *' update '*) touch_file "$DEPS_ROOT/var/lib/apt/lists/x_Packages"; : >"$FAKE/unknown"; return ;;
        *' -s '*) simulate=yes ;;
    esac
    if is policy; then cat "$DEPS_ROOT/usr/sbin/policy-rc.d" >>"$FAKE/calls"; fi
    if is slow; then touch "$FAKE/begun"; sleep 60; fi
    if is interrupted; then fail 'E: dpkg was interrupted'; fi
    if is stale && [ $simulate = no ]; then rm "$FAKE/stale"; fail 'E: Failed to fetch x  404  Not Found'; fi
    while [ "$1" != --no-install-recommends ]; do shift; done
    shift
    for package in "$@"; do if listed broken "$package"; then fail "E: $package has unmet dependencies"; fi; done
    for package in "$@"; do
        if [ $simulate = yes ]; then echo "Inst $package (1.0)"; continue; fi
        printf '%s\n' "Get:1 x $package" "Unpacking $package (1.0) ..." "Setting up $package (1.0) ..."
        provide "$package"
    done
}

sudo() {
    note "sudo $*"
    case "$(cat "$FAKE/sudo") $1" in
        refusing*) fail 'sudo: student is not in the sudoers file.' ;;
        'password -n') fail 'sudo: a password is required' ;;
        *' -v') return ;;
        *' -n') shift ;;
    esac
    exec "$@"
}

case $name in
    id) cat "$FAKE/uid" ;;
    cc) listed headers "$(sed 's/.*<//; s/>.*//')" ;;
    perl) listed modules "${1#-M}" ;;
    python3) python "$@" ;;
    dpkg) note "dpkg $*"; rm -f "$FAKE/interrupted" ;;
    update-rc.d) note "update-rc.d $*" ;;
    apt-cache) apt_cache "$@" ;;
    apt-get) apt_get "$@" ;;
    make-reveal) make_reveal "$@" ;;
    npm | sudo) "$name" "$@" ;;
    provide) for package in "$@"; do provide "$package"; done ;;
esac
