// A reply in two packets: Nagle's algorithm holds the second until the first is acknowledged, and the client delays its acknowledgement.
"use strict";
{
const { text, rect, path } = machines;
const DELAY_MS = 40; // Linux's delayed acknowledgement
const WAYS = [0.05, 1, 5, 10];
const SERVER = 236, CLIENT = 432, TOP = 52, MS = 2.4; // MS: height of a millisecond

// The packets of one reply on a kept connection, in ms from the request on. `held`: from when to when the body stands in the server.
function model({ joined, nodelay, quick, distance }) {
  const packets = [{ by: "client", at: 0, what: "request" }];
  const begin = distance, acknowledged = 2 * distance + (quick ? 0 : DELAY_MS);
  let held = null;
  if (joined) packets.push({ by: "server", at: begin, what: "head and body" });
  else if (nodelay) packets.push({ by: "server", at: begin, what: "head" }, { by: "server", at: begin, what: "body" });
  else {
    held = { from: begin, to: acknowledged + distance };
    packets.push({ by: "server", at: begin, what: "head" }, { by: "client", at: acknowledged, what: "ACK" }, { by: "server", at: held.to, what: "body" });
  }
  return { packets, held, silent: held && !quick ? { from: 2 * distance, to: acknowledged } : null, done: packets.at(-1).at + distance };
}

const time = (ms) => `${Math.round(100 * ms) / 100} ms`;

// A row for each packet; the time in which no packet is under way is to scale.
function rows({ packets, silent }, { distance }) {
  let y = TOP;
  return packets.map((packet, at) => {
    const gap = silent && packet.what === "ACK" ? (silent.to - silent.from) * MS : 0, from = y + gap, slope = 12 + MS * distance;
    y = from + slope + 14;
    return { ...packet, at, from, to: from + slope, gap };
  });
}

function arrow({ by, from, to, what }) {
  const [x, end, back] = by === "server" ? [SERVER, CLIENT, -11] : [CLIENT, SERVER, 11], half = 6 * what.length + 6;
  return path(`M${x} ${from}L${end} ${to}`, by === "server" ? "way-a" : "way-b") + path(`M${end} ${to}l${back} -7l2 12z`, by === "server" ? "A" : "B")
    + rect(327 - half, (from + to) / 2 - 11, 2 * half, 22, "ground") + text(327, (from + to) / 2 + 6, what, "mid");
}

function draw(state) {
  const { held, silent, done, packets } = model(state), all = rows({ packets, silent }, state), seen = all.slice(0, state.shown);
  const last = all.at(-1), ack = all.find((one) => one.what === "ACK"), [, head] = all, bottom = last.to + 14;
  const waits = held && state.shown >= 2, answered = state.shown >= all.length;
  return [346, [
    text(SERVER, 24, "server", "h mid"), text(CLIENT, 24, "client", "h mid"),
    path(`M${SERVER} 34V${bottom}`, "line"), path(`M${CLIENT} 34V${bottom}`, "line"),
    ...(waits ? [
      rect(SERVER - 5, head.from, 10, ack.to - head.from, "A"), text(SERVER - 14, head.from + 18, "send(body): held back", "end"),
      text(SERVER - 14, head.from + 42, "until the head's ACK", "end"),
    ] : []),
    ...(waits && silent ? [
      rect(CLIENT - 5, head.to, 10, ack.from - head.to, "B"), text(CLIENT + 14, head.to + 34, "half a page: waits,"),
      text(CLIENT + 14, head.to + 58, `and delays its ACK`), text(CLIENT + 14, head.to + 82, `by ${DELAY_MS} ms`),
    ] : []),
    ...seen.map(arrow),
    ...seen.filter((one) => one.by === "server" && !(held && one.what === "body")).map((one) =>
      text(SERVER - 14, one.from + (state.joined ? 6 : -6), state.joined ? "send(both)" : `send(${one.what})`, "end")),
    answered ? text(CLIENT + 14, last.to + 6, `page: ${time(done)}`, "h") : "",
    text(0, 336, state.joined ? "server: one packet" : "server: two packets", "q"),
  ].join("")];
}

function say(state) {
  const { held, silent, done, packets } = model(state);
  if (state.shown < packets.length) {
    const packet = packets[state.shown - 1];
    if (packet.what === "head" && held) return "The body is small and the head is not acknowledged: Nagle's algorithm holds the body back.";
    if (packet.what === "ACK") return silent ? "The client gives in after 40 ms and acknowledges the head." : "The client acknowledges the head at once.";
    return `The ${packet.by} sends: ${packet.what}.`;
  }
  if (silent) return `Each side waits for the other: the page takes ${time(done)}, and the network needs ${time(4 * state.distance)} of it.`;
  if (held) return `The client acknowledges at once, so the page takes ${time(done)}: the body waits for one way there and back.`;
  if (state.joined) return `Head and body leave in one packet: the page takes ${time(done)}.`;
  return `With TCP_NODELAY the body does not wait: the page takes ${time(done)}, in two packets.`;
}

const start = { joined: false, nodelay: false, quick: false, distance: 1, shown: 4 };
const changed = (state) => ({ ...state, shown: model(state).packets.length });
machines.add("nagle", {
  title: "The packets of a reply between server and client",
  start, frame: 900,
  controls: [
    { name: "joined", label: "head and body in one send()" }, { name: "nodelay", label: "TCP_NODELAY" },
    { name: "quick", label: "client acknowledges at once" }, { name: "distance", label: "one way takes", values: WAYS, show: time },
  ],
  changed, model, draw, say,
  next: (state) => (state.shown < model(state).packets.length ? { ...state, shown: state.shown + 1 } : null),
  again: (state) => ({ ...state, shown: 1 }),
  steps: [{ ...start, shown: 1 }, { ...start, shown: 2 }, { ...start, shown: 3 }, start, changed({ ...start, nodelay: true }), changed({ ...start, joined: true })],
});
}
