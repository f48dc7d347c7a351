// A new descriptor has the lowest free number. So a number that is closed twice may be another client's by then.
"use strict";
{
const { text, rect, path } = machines;
const SLOTS = 10, WIDE = 60, TOP = 70;
const NUMBERS = Array.from({ length: SLOTS }, (_, fd) => fd);

const lowest = (slots) => slots.indexOf("");
const put = (slots, fd, what) => slots.map((before, at) => (at === fd ? what : before));
const isClient = (what) => /^[A-Z]$/.test(what);

// slots: what each number stands for, "" if it is free; `closed`: number and owner of the last close; `clients`: how many have come.
function act(state, action) {
  const { slots, clients, fd, to } = state, free = lowest(slots), lost = null;
  if (action === "accept" || action === "open") {
    const call = action === "accept" ? "accept()" : "open()";
    if (free < 0) return { ...state, lost, call: `${call} = −1 EMFILE` };
    const what = action === "open" ? "file" : String.fromCharCode(65 + (clients % 26));
    return { ...state, lost, slots: put(slots, free, what), clients: clients + (action === "accept"), call: `${call} = ${free}` };
  }
  if (action === "dup2") {
    if (!slots[fd]) return { ...state, lost, call: `dup2(${fd}, ${to}) = −1 EBADF` };
    return { ...state, lost: fd !== to && isClient(slots[to]) ? slots[to] : lost, slots: put(slots, to, slots[fd]), call: `dup2(${fd}, ${to}) = ${to}` };
  }
  const number = action === "close" ? fd : state.closed?.fd;
  if (number === undefined) return { ...state, lost, call: "nothing has been closed yet" };
  const owner = slots[number], closed = action === "close" && owner ? { fd: number, owner } : state.closed;
  if (!owner) return { ...state, lost, call: `close(${number}) = −1 EBADF` };
  const stolen = action === "again" && isClient(owner) ? owner : lost;
  return { ...state, lost: stolen, closed, slots: put(slots, number, ""), call: `close(${number}) = 0` };
}
const model = ({ slots, lost, closed }) => ({ lowest: lowest(slots), open: slots.filter(Boolean).length, lost, closed });

const kind = (what) => (!what ? "none" : isClient(what) ? "abcd"[(what.charCodeAt(0) - 65) % 4] : "n");
const short = { stdin: "in", stdout: "out", stderr: "err", listening: "listen" };
function draw({ slots, call, lost, closed, fd, to }) {
  const free = lowest(slots), middle = (at) => at * 64 + 2 + WIDE / 2;
  return [232, [
    free < 0 ? text(0, 24, "no number is free", "h") : text(Math.min(Math.max(middle(free), 66), 574), 24, "lowest free", "h mid")
      + path(`M${middle(free)} 62l-8 -16h16z`, "mark-fill"),
    ...slots.map((what, at) => rect(at * 64 + 2, TOP, WIDE, 56, kind(what), 5) + text(middle(at), TOP + 35, short[what] ?? what, isClient(what) ? "h mid" : "mid")
      + text(middle(at), TOP + 80, String(at), at === fd ? "h mid" : at === to ? "mid" : "q mid")),
    rect(fd * 64 + 14, TOP + 88, WIDE - 24, 3, "mark-fill"),
    text(0, 206, call || "nothing has been called yet", "m"),
    lost ? text(640, 206, `${lost} is cut off`, "h end") : closed ? text(640, 206, `closed last: ${closed.fd}, ${closed.owner}`, "q end") : "",
  ].join("")];
}

function say(state) {
  const { slots, call, lost, closed } = state, free = lowest(slots);
  if (lost && call.startsWith("close")) {
    return `The code that was done with ${closed.owner} closes ${closed.fd} a second time. The call succeeds, and cuts off ${lost}, which has that number now.`;
  }
  if (lost) return `dup2 closes what had the number before, without asking: ${lost} is cut off.`;
  if (call.includes("EBADF")) return "The number is free, so the call fails and does no harm. That is luck: the next accept() may give the number away.";
  if (free < 0) return "All numbers are taken: accept() and open() fail with EMFILE.";
  return `The next accept() or open() gives ${free}, the lowest number that is free.`;
}

const start = {
  slots: NUMBERS.map((at) => ["stdin", "stdout", "stderr", "listening", "A", "B", "C"][at] ?? ""), clients: 3, call: "", closed: null, lost: null, fd: 5, to: 0,
};
const after = (...actions) => actions.reduce(act, start);
machines.add("lowest-fd", {
  title: "The descriptors of a process in a row: which are open, and what for",
  start: after("close"),
  controls: [
    { action: "accept", label: "accept()" }, { action: "open", label: "open()" }, { name: "fd", label: "number", values: NUMBERS },
    { action: "close", label: "close(number)" }, { action: "again", label: "close the same once more" },
    { name: "to", label: "to", values: NUMBERS }, { action: "dup2", label: "dup2(number, to)" },
  ],
  act, model, draw, say, after,
  steps: [start, after("close"), after("close", "accept"), after("close", "accept", "again"), after("close", "again")],
});
}
