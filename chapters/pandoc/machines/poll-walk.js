// One poll looks at every entry of its array; one epoll_wait takes what stands on the ready list.
"use strict";
{
const { text, rect, path, count } = machines;
const ENTRIES = [4, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], READY = [1, 2, ...ENTRIES];
const AT_ONCE = 20; // entries in a step: a walk takes a time that grows with n
const WIDE = 400, HIGH = 208, TOP = 44, LIST = 420;

const places = ({ n, ready }) => Array.from({ length: ready }, (_, at) => Math.floor((at + 0.8) * n / ready));
const model = (state) => {
  const found = places(state).filter((place) => place < state.walked).length;
  return { looks: state.walked, found, pollLooks: state.n, epollLooks: state.ready, perEvent: state.n / state.ready, done: state.walked >= state.n };
};
const changed = (state) => ({ ...state, ready: Math.min(state.ready, state.n), walked: state.n });
const sizeOf = (n, across) => Math.floor(Math.min(WIDE / across, HIGH / Math.ceil(n / across), 40));
// As many in a row as give the largest cells.
function columns(n) {
  let best = 1;
  for (let across = 2; across <= 100; across++) if (sizeOf(n, across) > sizeOf(n, best)) best = across;
  return best;
}

// Rows of cells as dashed lines: two elements for 5000 cells.
function cells(from, to, across, size, kind) {
  let d = "";
  for (let row = Math.floor(from / across); row * across < to; row++) {
    const first = Math.max(from, row * across), last = Math.min(to, (row + 1) * across);
    d += `M${(first - row * across) * size} ${Math.round(10 * (TOP + (row + 0.5) * size)) / 10}h${Math.round(10 * ((last - first) * size - 1)) / 10}`;
  }
  const gap = size > 10 ? 2 : 1;
  return d && path(d, kind, { "stroke-width": size - gap, "stroke-dasharray": `${size - gap} ${gap}` });
}

function draw(state) {
  const { n, ready, walked } = state, { done, perEvent } = model(state);
  const across = columns(n), size = sizeOf(n, across);
  const at = (place) => [(place % across) * size, TOP + Math.floor(place / across) * size];
  const around = (place, kind, least) => {
    const [x, y] = at(place), side = Math.max(size - 2, least), off = (size - 1 - side) / 2;
    return rect(x + off, y + off, side, side, kind);
  };
  const shown = places(state).slice(0, 5), rest = ready - shown.length, per = count(Math.round(10 * perEvent) / 10);
  return [346, [
    text(0, 20, `poll: an array of ${count(n)}`, "h"), text(LIST, 20, "epoll: ready list", "h"),
    cells(0, walked, across, size, "walked"), cells(walked, n, across, size, "ahead"),
    ...(ready <= 500 ? places(state).map((place) => around(place, "B", 5)) : []),
    done ? "" : around(walked, "mark", 12),
    ...shown.flatMap((place, row) => [rect(LIST, TOP + row * 38, 170, 32, "b", 4), text(LIST + 12, TOP + row * 38 + 22, `entry ${count(place)}`)]),
    rest ? text(LIST, TOP + 5 * 38 + 20, `and ${count(rest)} more`, "q") : "",
    text(0, 290, `looked at ${count(walked)} of ${count(n)}`), text(LIST, 290, `looked at ${count(ready)}`),
    text(0, 322, `${per} ${per === "1" ? "look" : "looks"} for each event`, "h"), text(LIST, 322, "1 look for each", "h"),
  ].join("")];
}

function say(state) {
  const { n, ready, walked } = state, { found, done } = model(state), events = ready === 1 ? "one event" : `${count(ready)} events`;
  if (!done) {
    return `poll has looked at ${count(walked)} of ${count(n)} entries and has found ${found === 0 ? "no event yet" : `${count(found)} of ${events}`}. `
      + `epoll_wait has already returned ${ready === 1 ? "it" : "all of them"}.`;
  }
  return `One poll looks at ${count(n)} entries to report ${events}. One epoll_wait looks at ${ready === 1 ? "one entry" : `${count(ready)} entries`}, however many are silent.`;
}

const whole = (n, ready = 1) => ({ n, ready, walked: n });
machines.add("poll-walk", {
  title: "poll walks along an array, epoll takes entries from its ready list",
  start: { n: 100, ready: 1, walked: 65 },
  controls: [{ name: "n", label: "connections", values: ENTRIES }, { name: "ready", label: "ready at once", values: READY }],
  changed, model, draw, say,
  next: (state) => (state.walked < state.n ? { ...state, walked: Math.min(state.n, state.walked + AT_ONCE) } : null),
  again: (state) => ({ ...state, walked: 0 }),
  steps: [whole(10), { n: 100, ready: 1, walked: 65 }, whole(100), whole(1000), whole(5000), whole(1000, 500)],
});
}
