#!/bin/sh
# What this tree takes from the system: prints what is missing and what for, installs it if it may.
#
#   deps.sh [class...]           build measure book slides test (the default), lint, browser, cross,
#                                peers
#   deps.sh --status [class...]  per row of packages.tsv: package, "ok" or "missing" (for doctor)
#
# It may:  DEPS=yes   as root, or with a sudo that asks nothing: installs; else says so and goes on
#          DEPS=ask   (default) on a terminal: asks once. Without one nobody can say yes: it goes on
#                     and skips. But the design's sentence is "installs them only as root or after a
#                     yes": so root without a terminal installs what it has printed.
#          DEPS=skip  never asks, never installs
# Status:  0, also when things are missing: what needs them is skipped. 1 when nothing can run
#          without them (class base). 2 for bad usage.
# Needs:   what Debian's base has (dash, coreutils, grep, sed, find). With all there it is silent.
#
# DEPS_ROOT is put before every absolute path that is looked at; the tests use it.

set -u
cd "$(dirname "$0")/.." || exit 1
here=setup
table=$here/packages.tsv
log=build/deps.log
: "${DEPS:=ask}"
root=${DEPS_ROOT-}
tab=$(printf '\t')
reveal_version=5.2.1
reveal_dir=build/node/node_modules/reveal.js
zig_version=0.17.1
zig_dir=build/zig/$zig_version

say() { printf '%s\n' "$*"; }
die() { printf 'deps.sh: %s\n' "$*" >&2; exit 2; }
count() { printf '%s\n' $#; }
any_file() { for file in "$@"; do test -e "$file" && return 0; done; return 1; }

# ---- what is here --------------------------------------------------------------------------------

# The Makefile's rule: the first python3 that has scipy. While none has, it is Debian's own, the last,
# that has to be looked at: it will have scipy, and what another one has beside it is then no use.
# Sets $python, $modules.
find_python() {
    python='' modules=''
    for candidate in ${PYTHON:+"$PYTHON"} python3 "$root/usr/bin/python3"; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        found=$("$candidate" -c 'import sys, importlib.util as u
print("", *(m for m in sys.argv[1:] if u.find_spec(m)), "")' \
            tomllib scipy pytest xdist mypy selenium pip ensurepip 2>/dev/null) || continue
        if [ -z "$python" ] || [ "$have_apt" = yes ]; then python=$candidate modules=$found; fi
        case $found in *' scipy '*) return ;; esac
    done
}

is_here() { # KIND:ITEM
    item=${1#*:}
    case $1 in
        command:*) command -v "$item" >/dev/null ;;
        daemon:*) (PATH=$PATH:$root/usr/sbin:$root/sbin command -v "$item") >/dev/null ;;
        python:*) case $modules in *" $item "*) ;; *) return 1 ;; esac ;;
        perl:*) perl "-M$item" -e 1 2>/dev/null ;;
        header:*) printf '#include <%s>\n' "$item" | cc -E - >/dev/null 2>&1 ;;
        file:*) test -e "$root$item" ;;
        font:*) any_file "$root/usr/share/fonts"/*/"$item" "$root/usr/share/fonts"/*/*/"$item" \
            "${HOME:-/nonexistent}/.local/share/fonts/$item" ;;
        reveal:*) test -f "$reveal_dir/dist/reveal.js" && {
            test -f "build/node/reveal-$item" ||
                grep -qs "\"version\": \"$item\"" "$reveal_dir/package.json"
        } ;;
        zig:*) test -x "build/zig/$item/zig" ;;
        *) die "$table: unknown kind in \"$1\"" ;;
    esac
}

provided() { # ALTERNATIVE|ALTERNATIVE...
    alternatives=$1
    while :; do
        is_here "${alternatives%%|*}" && return 0
        case $alternatives in *'|'*) alternatives=${alternatives#*|} ;; *) return 1 ;; esac
    done
}

wanted() { # CLASS,CLASS...
    for class in $asked; do
        case ,$1, in *",$class,"*) return 0 ;; esac
    done
    return 1
}

# Sets $missing (package, name, needed by: one a line), $missing_base, $apt_packages, $reveal_missing
# and $zig_missing. Only the deck uses reveal.js, only `make cross` Zig, and only the absence of one
# of them makes class fetch wanted.
look() {
    find_python
    missing='' missing_base='' apt_packages='' asked=" base $classes "
    reveal_missing=no zig_missing=no
    case $asked in *' slides '*)
        if ! is_here "reveal:$reveal_version"; then reveal_missing=yes asked="$asked fetch "; fi ;;
    esac
    case $asked in *' cross '*)
        if ! is_here "zig:$zig_version"; then zig_missing=yes asked="$asked fetch "; fi ;;
    esac
    while IFS=$tab read -r package class provides name needed; do
        case $package in '#'* | '') continue ;; esac
        wanted "$class" || continue
        provided "$provides" && continue
        missing="$missing$package$tab$name$tab$needed
"
        case $class in base) missing_base="$missing_base, $name" ;; esac
        case $provides in reveal:* | zig:*) ;; *) apt_packages="$apt_packages $package" ;; esac
    done <"$table"
}

status() {
    find_python
    asked=" base $classes fetch "
    while IFS=$tab read -r package class provides _; do
        case $package in '#'* | '') continue ;; esac
        wanted "$class" || continue
        if provided "$provides"; then state=ok; else state=missing; fi
        printf '%s\t%s\n' "$package" "$state"
    done <"$table"
}

print_missing() { # TITLE; by package, or by generic name where there is no apt-get
    say "$1:"
    printf '%s' "$missing" | while IFS=$tab read -r package name needed; do
        if [ "$have_apt" = yes ]; then shown=$package; else shown=$name; fi
        printf '  %-22s %s\n' "$shown" "$needed"
    done
}

# ---- may it --------------------------------------------------------------------------------------

on_terminal() { [ -t 0 ] && [ -t 2 ]; }

# Sets $can_apt and $become, what precedes apt-get. sudo is not even tried before somebody said yes:
# it reports to the administrator who may not use it.
find_privilege() {
    become='' can_apt=no
    [ "$have_apt" = yes ] || return 0
    if [ "$(id -u)" = 0 ]; then
        can_apt=yes
    elif command -v sudo >/dev/null; then
        case $DEPS in
            yes) if sudo -n true 2>/dev/null; then can_apt=yes become='sudo -n'; fi ;;
            ask) if on_terminal; then can_apt=yes become=sudo; fi ;;
        esac
    fi
}

say_what_to_ask_for() {
    [ -n "$apt_packages" ] && [ "$have_apt" = yes ] && [ "$can_apt" = no ] || return 0
    say "no right to install here (not root, and no sudo that asks nothing); ask for:"
    say "  apt-get install --no-install-recommends$apt_packages"
}

can_fetch_reveal() {
    [ "$reveal_missing" = yes ] || return 1
    [ "$can_apt" = yes ] || is_here python:pip || is_here command:npm
}

can_fetch_zig() {
    [ "$zig_missing" = yes ] || return 1
    [ "$can_apt" = yes ] || is_here python:pip
}

plan_in_words() {
    words=''
    if [ "$can_apt" = yes ] && [ -n "$apt_packages" ]; then
        # shellcheck disable=SC2086 # a list of package names
        words="install these $(count $apt_packages) packages with apt-get"
    fi
    if can_fetch_reveal; then
        words="${words:+$words and }fetch reveal.js $reveal_version (2.4 MB) into build/node"
    fi
    if can_fetch_zig; then
        words="${words:+$words and }fetch Zig $zig_version (101 MB; 411 MB unpacked) into build/zig"
    fi
    printf '%s' "$words"
}

consent() {
    case $DEPS in yes) return 0 ;; skip) return 1 ;; esac
    plan=$(plan_in_words)
    [ -n "$plan" ] || return 1
    if on_terminal; then
        printf '%s? [y/N] ' "$plan" >&2
        read -r answer || { printf '\n' >&2; return 1; }
        case $answer in [yY]*) return 0 ;; *) return 1 ;; esac
    fi
    [ "$can_apt" = yes ] && [ -z "$become" ] || return 1
    say "root without a terminal: going to $plan (DEPS=skip prevents it)"
}

# ---- main ----------------------------------------------------------------------------------------

install_what_it_may() {
    mkdir -p build && : >"$log" || return 0
    if [ -n "$apt_packages" ] && [ "$can_apt" = yes ]; then
        # shellcheck source=setup/deps-apt.sh
        . "$here/deps-apt.sh"
        case $asked in *' peers '*) install_peers ;; *) install_all ;; esac
        find_python
    fi
    if [ "$reveal_missing" = yes ]; then
        # shellcheck source=setup/deps-reveal.sh
        . "$here/deps-reveal.sh"
        fetch_reveal
    fi
    if [ "$zig_missing" = yes ]; then
        # shellcheck source=setup/deps-zig.sh
        . "$here/deps-zig.sh"
        fetch_zig
    fi
    look
    if [ -n "$missing" ]; then print_missing "still missing"; fi
}

finish() {
    if [ -n "$missing_base" ]; then
        printf 'deps.sh: nothing can run without: %s\n' "${missing_base#, }" >&2
        exit 1
    fi
    if [ -n "$missing" ]; then
        say "going on; what needs them is skipped (make doctor: what, why, and the remedy)"
    fi
    exit 0
}

case $DEPS in ask | yes | skip) ;; *) die "DEPS is \"$DEPS\"; it can be ask, yes or skip" ;; esac
mode=install
if [ "${1-}" = --status ]; then mode=status; shift; fi
[ $# -gt 0 ] || set -- build measure book slides test
for class in "$@"; do
    case $class in
        base | build | measure | book | slides | test | lint | browser | cross | peers) ;;
        *) die "unknown class \"$class\"; there are" \
            "build measure book slides test lint browser cross peers" ;;
    esac
done
classes=$*

if command -v apt-get >/dev/null; then have_apt=yes; else have_apt=no; fi
if [ "$mode" = status ]; then status; exit 0; fi
look
[ -n "$missing" ] || exit 0
print_missing "missing here"
if [ "$have_apt" = no ]; then
    say "no apt-get here: install what you want of these by this system's own means"
fi
find_privilege
if [ "$DEPS" != skip ]; then say_what_to_ask_for; fi
if consent; then install_what_it_may; fi
finish
