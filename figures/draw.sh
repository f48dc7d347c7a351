#!/bin/sh
# Draws one figure: SLUG SCRIPT DATA OUT. Status 0 if it is drawn, or if it cannot be, for a reason
# that then stands in OUT with .skipped for .svg; else 1, and no file stays that looks finished.
set -eu
slug=$1 script=$2 data=$3 out=$4
part=$out.$$.part text=$out.$$.text errors=$out.$$.errors

set -- -e "slug = '$slug'; out = '$part'; data = '$data'" "$script"
if LC_ALL=C.UTF-8 gnuplot "$@" 2> "$errors"; then
    # A machine without this font must not fall back to one with serifs. And gnuplot gives each
    # curve its own source text for a title, which browsers show where one points at it. A colour is
    # written in one way only, for dark.css names it.
    sans='DejaVu Sans, Verdana, sans-serif'
    sed -e "s/font-family=\"DejaVu Sans\"/font-family=\"$sans\"/" \
        -e 's,\(<g id="[^"]*" *>\)<title>.*</title>,\1,' \
        -e "s,^<title>[a-z0-9_]*</title>,<title>$slug</title>," \
        -e 's/rgb( *\([0-9]*\), *\([0-9]*\), *\([0-9]*\))/rgb(\1,\2,\3)/g' \
        -e '/^<g id="gnuplot_canvas">/a\
<style>' -e '/^<g id="gnuplot_canvas">/r figures/dark.css' -e '/^<g id="gnuplot_canvas">/a\
</style>' "$part" > "$text"
    mv -f "$text" "$out"
    rm -f "$part" "${out%.svg}.skipped"
    # What gnuplot says of a trace in which nobody is, say, in a queue.
    grep -v 'Skipping data file with no valid points\|^$' "$errors" >&2 || :
    rm -f "$errors"
elif [ $? -eq 77 ]; then
    echo "SKIP $slug.svg: $(cat "$errors")"
    rm -f "$out" "$part"
    mv -f "$errors" "${out%.svg}.skipped"
else
    cat "$errors" >&2
    rm -f "$errors" "$part"
    exit 1
fi
