#!/bin/sh
# The far side of remote.py, run by ssh at CLIENT: one load after the other, in a temporary folder.
#
# stdin    put BYTES NAME        and then so many bytes: a file of the folder, which may be run
#          run SECONDS WORD...   words quoted for a shell; ended when its time is up, with status 124
#          facts                 what there is
# stdout   remote.sh: ready; then an answer to each of them, and BYTES bytes:
#          put STATUS BYTES
#          run STATUS BEGIN END USER SYSTEM OUT BYTES     its stdout, of OUT bytes, and its stderr
#          facts BYTES                                    NAME VALUE, a line each
#
# The end of stdin is the end of everything. It comes when the harness ends, in whatever way, and when
# the connection is lost; so this shell waits for the next line only, and for no load.
# Needs:   what every Linux has (mktemp, head, timeout, /proc).

set -u
umask 077
LC_ALL=C
export LC_ALL
job=''

finish() {
    trap '' HUP INT TERM
    if [ -n "$job" ]; then
        kill "$job" 2>/dev/null
        wait "$job" 2>/dev/null
    fi
    cd / && rm -rf "$folder"
}

# Its own times and those of its children are on this host's clock. /proc/uptime, because no change of
# the date moves it.
run() { # SECONDS WORD...
    stopped='' tool=''
    trap 'stopped=yes; [ -z "$tool" ] || kill "$tool" 2>/dev/null' TERM
    seconds=$1
    shift
    read -r begin _ </proc/uptime
    timeout -k 2 "$seconds" "$@" </dev/null >out 2>err &
    tool=$!
    if [ -n "$stopped" ]; then kill "$tool"; fi
    wait "$tool"
    status=$?
    if [ -n "$stopped" ]; then
        wait "$tool"
        return
    fi
    read -r end _ </proc/uptime
    command times >used # not to end where it fails, as a special builtin does
    # shellcheck disable=SC2046 # two words; on a full disk there are none
    set -- $(sed -n 2p used) 0m0s 0m0s
    length=$(wc -c <out)
    cat err >>out
    printf 'run %d %s %s %s %s %d %d\n' \
        "$status" "$begin" "$end" "$1" "$2" "$length" "$(wc -c <out)"
    cat out
}

version() { # TOOL WORD...: nothing if it is not installed
    name=$1
    shift
    if command -v "$name" >/dev/null; then
        printf '%s %s\n' "$name" "$("$@" 2>&1 | head -n 1)"
    fi
}

facts() {
    printf 'connection %s\n' "${SSH_CONNECTION-}"
    printf 'kernel %s\n' "$(uname -sr)"
    printf 'machine %s\n' "$(uname -m)"
    printf 'cpu %s\n' "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
    printf 'cpus %d\n' "$(getconf _NPROCESSORS_ONLN)"
    printf 'cores %d\n' "$(cat /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list \
        2>/dev/null | sort -u | wc -l)"
    version wrk wrk -v
    version h2load h2load --version
}

# What the last job has printed has been read; only its end has not been seen.
settle() {
    if [ -n "$job" ]; then wait "$job"; fi
    job=''
}

folder=$(mktemp -d "${TMPDIR:-/tmp}/quest.XXXXXX") || exit 1
trap finish EXIT
trap 'exit 1' HUP INT TERM
cd "$folder" || exit 1
echo 'remote.sh: ready'
while read -r verb first rest; do
    settle
    case $verb in
        put)
            head -c "$first" >"$rest" && chmod 700 "$rest"
            echo "put $? 0"
            ;;
        run)
            eval "set -- $rest"
            run "$first" "$@" &
            job=$!
            ;;
        facts)
            facts >known
            printf 'facts %d\n' "$(wc -c <known)"
            cat known
            ;;
    esac
done
