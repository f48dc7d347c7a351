// The same bytes arrive at two sockets: epoll watches one by level and one by edge. A lamp is lit while the next epoll_wait would return.
"use strict";
{
const { text, rect, circle, path } = machines;
const ARRIVE = 2, READ = 1, MOST = 6; // kB
const SIDES = ["level", "edge"];

// A side: kB in the socket, whether something is new since the last event (what an edge is), whether its server is asleep, its last call.
const lit = (side, { kb, isNew }) => (side === "level" ? kb > 0 : isNew);
function one(side, before, action) {
  const now = { ...before };
  const wait = () => {
    now.asleep = !lit(side, now);
    now.last = now.asleep ? "epoll_wait sleeps" : /event/.test(before.last) ? "an event again" : "epoll_wait: event";
    if (!now.asleep) now.isNew = false;
  };
  if (action === "arrive") {
    now.kb = Math.min(MOST, now.kb + ARRIVE);
    now.isNew = true;
    if (now.asleep) wait();
  } else if (now.asleep) return now; // a server that sleeps does nothing
  else if (action === "wait") wait();
  else if (action === "read") {
    now.last = now.kb ? `recv: ${READ} kB` : "recv: EAGAIN";
    now.kb = Math.max(0, now.kb - READ);
  } else if (action === "drain") {
    now.last = "recv until EAGAIN";
    now.kb = 0;
    now.isNew = false;
  }
  return now;
}
const act = (state, action) => Object.fromEntries(SIDES.map((side) => [side, one(side, state[side], action)]));
const after = (...actions) => actions.reduce(act, { level: asleep, edge: asleep });
const model = (state) => Object.fromEntries(SIDES.map((side) => [side, {
  lamp: lit(side, state[side]), asleep: state[side].asleep, kb: state[side].kb, hangs: state[side].asleep && state[side].kb > 0,
}]));

function drawn(side, state, left) {
  const { kb, last } = state[side], { lamp, asleep: sleeps, hangs } = model(state)[side];
  return [
    text(left, 20, side === "level" ? "level (the default)" : "edge (EPOLLET)", "h"),
    circle(left + 38, 74, 26, lamp ? "on" : "box"), lamp ? path(Array.from({ length: 8 }, (_, i) => {
      const [dx, dy] = [Math.cos(i * Math.PI / 4), Math.sin(i * Math.PI / 4)];
      return `M${(left + 38 + 30 * dx).toFixed(1)} ${(74 + 30 * dy).toFixed(1)}l${(9 * dx).toFixed(1)} ${(9 * dy).toFixed(1)}`;
    }).join(""), "line") : "",
    text(left + 84, 70, "the next epoll_wait"), text(left + 84, 94, lamp ? "returns at once" : "sleeps", lamp ? "h" : "t"),
    text(left, 144, `socket: ${kb} kB not read`),
    rect(left, 156, 292, 40, "box", 4),
    ...Array.from({ length: kb }, (_, i) => rect(left + 5 + i * 48, 161, 42, 30, "b", 3)),
    text(left, 232, "the server:"), text(left + 106, 232, last || "epoll_wait sleeps"),
    rect(left, 250, 292, 44, hangs ? "alarm" : sleeps ? "none" : "a", 6),
    text(left + 146, 278, hangs ? "hangs: bytes unread" : sleeps ? "asleep, rightly" : "awake", hangs ? "h mid" : "mid"),
  ].join("");
}
const draw = (state) => [306, drawn("level", state, 2) + drawn("edge", state, 340)];

function say(state) {
  const { level, edge } = model(state);
  if (edge.hangs) return `By edge ${edge.kb} kB lie in the socket and the server sleeps: nothing new has come, so nothing is reported. By level they are reported again.`;
  if (level.asleep && edge.asleep) return "Both sockets are empty and both servers sleep in epoll_wait, rightly.";
  if (/event/.test(state.edge.last) && !edge.lamp) return "Both calls have returned, for bytes have come. What the server does now is its own affair.";
  if (edge.kb && !edge.lamp) return "By level the rest is reported again. By edge it is not: a server that calls epoll_wait now will hang, so it must read until EAGAIN.";
  if (!edge.kb) return "Everything is read: neither is reported again, and both may sleep.";
  return "New bytes have come since the last epoll_wait: both lamps are lit.";
}

const asleep = { kb: 0, isNew: false, asleep: true, last: "" };
machines.add("edge", {
  title: "Two lamps: when epoll reports a socket by level, and when by edge",
  start: after("arrive", "read", "wait"),
  controls: [
    { action: "arrive", label: `${ARRIVE} kB arrive` }, { action: "read", label: `read ${READ} kB` },
    { action: "drain", label: "read until EAGAIN" }, { action: "wait", label: "epoll_wait" },
  ],
  act, model, draw, say, after,
  steps: [after(), after("arrive"), after("arrive", "read"), after("arrive", "read", "wait"), after("arrive", "read", "wait", "arrive"),
    after("arrive", "drain")],
});
}
