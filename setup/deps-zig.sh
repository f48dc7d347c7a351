# The part of deps.sh that fetches Zig, whose C compiler `make cross` uses; packages.tsv says whence.
# shellcheck shell=sh
# shellcheck disable=SC2154 # $log, $python, $zig_version, $zig_dir and say, is_here are deps.sh's

# sha256 of the wheels for Linux on x86-64, Linux on aarch64, and macOS on arm64.
zig_sums='
ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54
b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e
09953b6af7f64168b915180a42774f520f92d86ef6331b28e33915c7e1f0bb23
'

# Fetched beside its place, compared, then moved: killed at any moment, it is there whole or not.
fetch_zig() {
    rm -rf build/zig/new.*
    new=build/zig/new.$$
    mkdir -p "$new"
    say "fetching Zig $zig_version ..."
    if ! is_here python:pip; then
        say "  not fetched: pip is not here"
    elif ! fetch_zig_with_pip; then
        say "  not fetched: $(grep '^ERROR' "$log" | tail -n 1)"
    elif ! zig_is_the_one; then
        say "  not used: what pip brought is not Zig $zig_version: wrong checksum"
    elif unpack_zig; then
        rm -rf "$zig_dir"
        mv "$new/wheel/ziglang" "$zig_dir"
    else
        say "  not unpacked: $(tail -n 1 "$log")"
    fi
    rm -rf "$new"
}

fetch_zig_with_pip() {
    "$python" -m pip download -q --disable-pip-version-check --no-cache-dir --retries 1 \
        --timeout 15 --no-deps --only-binary :all: -d "$new" "ziglang==$zig_version" \
        >>"$log" 2>&1 </dev/null
}

zig_is_the_one() {
    sum=$(sha256sum "$new"/*.whl | cut -d ' ' -f 1)
    case $zig_sums in *"
$sum
"*) ;; *) return 1 ;; esac
}

# A wheel is only unpacked: nothing of it is run but zig itself, by make.
unpack_zig() {
    "$python" -m zipfile -e "$new"/*.whl "$new/wheel" >>"$log" 2>&1 &&
        chmod +x "$new/wheel/ziglang/zig"
}
