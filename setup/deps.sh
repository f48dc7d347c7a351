#!/bin/sh
# What is missing of packages.tsv, and its installation:  deps.sh [--status] [class...]   (build measure book slides test)
#
# DEPS=ask (the default) asks once, if there is a terminal; DEPS=yes installs; DEPS=skip does not. By apt-get, as root or with
# sudo; else it says the line to type. --status prints each package, with "ok" or "missing".
# Status 0, also when things are missing; 1 when nothing can run without them (class base); 2 for bad usage.
set -u
unset CDPATH # cd would look there first
cd "$(dirname "$0")/.." || exit 1
die() { echo "deps.sh: $*" >&2; exit 2; }
known='base build measure book slides test lint browser cross peers' status=no tab=$(printf '\t')
case ${DEPS:=ask} in ask | yes | skip) ;; *) die "DEPS is \"$DEPS\"; it can be ask, yes or skip" ;; esac
if [ "${1-}" = --status ]; then status=yes; shift; fi
[ $# -gt 0 ] || set -- build measure book slides test
for class; do case " $known " in *" $class "*) ;; *) die "unknown class \"$class\"; there are $known" ;; esac; done

here() { # KIND:ITEM|KIND:ITEM
    item=${1%%"|"*} && item=${item#*:}
    case $1 in
        command:* | daemon:*) (PATH=$PATH:/usr/sbin:/sbin && command -v "$item") ;;
        python:*) case $modules in *" $item "*) ;; *) false ;; esac ;;
        perl:*) perl "-M$item" -e 1 ;;
        header:*) echo "#include <$item>" | cc -E - ;;
        font:*) find /usr/share/fonts "${HOME:-/}/.local/share/fonts" -name "$item" | grep . ;;
        *) test -e "$item" ;;
    esac >/dev/null 2>&1 || case $1 in *"|"*) here "${1#*"|"}" ;; *) false ;; esac
}

look() { # CLASS...: sets $missing, for people; $apt and $fetch, what brings it; $base, without which nothing runs
    missing='' apt='' fetch='' base=''
    for python in "${PYTHON:-python3}" /usr/bin/python3; do # the Makefile's rule: the first that has scipy
        modules=$("$python" -E -c 'import re, sys, importlib.util as u
print("", *filter(u.find_spec, re.findall(r"python:(\w+)", sys.stdin.read())), "")' <setup/packages.tsv 2>/dev/null)
        case $modules in *' scipy '*) break ;; esac
    done
    while IFS=$tab read -r package classes provides name needed; do
        found=no
        for class in base "$@"; do case ,$classes, in *",$class,"*) found=yes ;; esac; done
        case $package$found in '#'* | *no) continue ;; esac
        if here "$provides"; then state=ok; else state=missing; fi
        if [ $status = yes ]; then printf '%s\t%s\n' "$package" $state; continue; fi
        if [ $state = ok ]; then continue; fi
        missing="$missing$(printf '\n  %s: %s; for %s' "$package" "$name" "$needed")"
        if [ "$classes" = base ]; then base="$base, $name"; fi
        case $package in *@*) fetch="$fetch ${package%@*}" ;; *) apt="$apt $package" ;; esac
    done <setup/packages.tsv
}

if [ $status = yes ]; then look "$@" fetch; exit 0; fi
look "$@"
if [ -n "$fetch" ]; then look "$@" fetch; fi # what fetches it is wanted then, too
[ -n "$missing" ] || exit 0
echo "missing here:$missing"
command -v apt-get >/dev/null || { echo "no apt-get here: install what you want by this system's own means"; apt=''; }
if [ "$(id -u)" = 0 ]; then become=''; elif sudo -n true 2>/dev/null || { [ -t 0 ] && command -v sudo >/dev/null; }; then become=sudo
elif [ -n "$apt" ]; then echo "to be typed by root:  apt-get install --no-install-recommends$apt"; apt=''; fi
if [ "$DEPS" = ask ] && [ -t 0 ] && [ -n "$apt$fetch" ]; then
    printf 'install%s%s? [y/N] ' "${apt:+ with apt-get:$apt}" "${fetch:+${apt:+;} into build/:$fetch}" >&2
    read -r answer || { answer='' && echo; }
    case $answer in [yY]*) DEPS=yes ;; esac
fi
if [ "$DEPS" = yes ] && [ -n "$apt$fetch" ]; then
    # shellcheck disable=SC2086 # lists of words
    [ -z "$apt" ] || $become sh setup/install.sh $apt
    look "$@" fetch
    for what in $fetch; do "$python" setup/fetch.py "$what"; done
    look "$@"
    [ -z "$missing" ] || echo "still missing:$missing"
fi
[ -z "$base" ] || { echo "deps.sh: nothing can run without: ${base#, }" >&2; exit 1; }
[ -z "$missing" ] || echo "going on; what needs them is skipped (make doctor: what, why, and the remedy)"
