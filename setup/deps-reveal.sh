# The part of deps.sh that fetches reveal.js; packages.tsv says why it comes the way it does.
# shellcheck shell=sh
# shellcheck disable=SC2154 # $log, $python, $reveal_version, $reveal_dir and say, is_here are deps.sh's

wheel=sphinx-revealjs==3.2.1
inside_wheel=sphinx_revealjs/_static/revealjs
# sha256 over the sha256sum lines of dist, plugin, css and LICENSE, in the C order of their names.
reveal_sum=e02b2af6c44a2239f77065d63b08b1fe5c87d1e94033b435af02fed9702e9ec5

# Fetched beside its place, compared, then moved: killed at any moment, it is there whole or not.
fetch_reveal() {
    rm -rf build/node/new.*
    new=build/node/new.$$
    mkdir -p "$new" build/node/node_modules
    say "fetching reveal.js $reveal_version ..."
    from='' tried=''
    if is_here python:pip && fetch_with_pip; then from=$new/wheel/$inside_wheel
    elif is_here command:npm && fetch_with_npm; then from=$new/node_modules/reveal.js
    fi
    if [ -n "$from" ] && [ "$(tree_sum "$from")" = "$reveal_sum" ]; then
        rm -rf "$reveal_dir"
        mv "$from" "$reveal_dir" && : >"build/node/reveal-$reveal_version"
    elif [ -n "$from" ]; then
        say "  not used: what $tried brought is not reveal.js $reveal_version: wrong checksum"
    elif [ -z "$tried" ]; then
        say "  not fetched: neither pip nor npm is here"
    else
        say "  not fetched: $(grep -E '^(ERROR|npm ERR|npm error)' "$log" | tail -n 1)"
    fi
    rm -rf "$new"
}

# A wheel is only unpacked: nothing of it is run.
fetch_with_pip() {
    tried=pip
    "$python" -m pip download -q --disable-pip-version-check --no-cache-dir --retries 1 \
        --timeout 15 --no-deps --only-binary :all: -d "$new" "$wheel" >>"$log" 2>&1 </dev/null &&
        "$python" -m zipfile -e "$new"/*.whl "$new/wheel" >>"$log" 2>&1
}

fetch_with_npm() {
    tried=npm
    npm install --ignore-scripts --no-audit --no-fund --fetch-retries=1 --prefix "$new" \
        "reveal.js@$reveal_version" >>"$log" 2>&1 </dev/null
}

tree_sum() {
    (cd "$1" && find dist plugin css LICENSE -type f | LC_ALL=C sort | xargs sha256sum |
        sha256sum | cut -d ' ' -f 1)
}
