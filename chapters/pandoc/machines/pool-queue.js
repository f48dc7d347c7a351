// A queue in front of a pool of threads: requests come at random and take a random time (M/M/w). The curve is Erlang's formula, the dots
// are one run, drawn by chance and the same each time. Diamonds are what was measured of a real pool, of as many threads as MEASURED.
"use strict";
{
const { text, rect, circle, path, way, random } = machines;
const RATES = [10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100, 110, 120, 130, 140, 160, 180, 200, 300, 400];
const TIMES = [1, 2, 5, 10, 20, 30, 40, 50, 100], THREADS = [1, 2, 3, 4, 6, 8, 12, 16], HELD = [0, 1, 2, 3, 4, 6, 8, 12, 16];
const LEFT = 356, BOTTOM = 268, WIDE = 276, HIGH = 210, MOST = 12; // the chart; MOST: times the service time
const MEASURED = 4;
const STEP_MS = 20, END_MS = 20000;

// The chance that a request has to wait, with `busy` of the threads in use on average.
function mustWait(threads, busy) {
  let term = 1, none = 1;
  for (let k = 1; k < threads; k++) none += term *= busy / k;
  const all = (term * busy) / threads / (1 - busy / threads);
  return all / (none + all);
}
// wait, stay in ms; there, waiting: requests on average; Infinity where more comes than can be served.
function model({ rate, service, threads, held }) {
  const free = threads - held, busy = (rate * service) / 1000, load = free ? busy / free : Infinity;
  const wait = load < 1 ? (mustWait(free, busy) * service) / (free - busy) : Infinity, stay = wait + service;
  return { free, busy, load, wait, stay, there: (rate * stay) / 1000, waiting: (rate * wait) / 1000 };
}

// One run: when each request came, began and ended, in ms, of those that came before `until`.
function run({ rate, service, threads, held }, until) {
  const draw = random(7), at = (mean) => -mean * Math.log(1 - draw()), free = Array(threads - held).fill(0), requests = [];
  for (let came = at(1000 / rate); came < until; came += at(1000 / rate)) {
    const first = free.indexOf(Math.min(...free)), began = Math.max(came, free[first] ?? Infinity), ended = began + at(service);
    if (first >= 0) free[first] = ended;
    requests.push({ came, began, ended, by: first });
  }
  return requests;
}
// Little's law in a run that is followed until its last request has ended: N on average, X a second, R in ms.
function little(requests) {
  const end = requests.reduce((last, one) => Math.max(last, one.ended), 0), stays = requests.reduce((sum, one) => sum + one.ended - one.came, 0);
  const changes = requests.flatMap((one) => [[one.came, 1], [one.ended, -1]]).sort((a, b) => a[0] - b[0]);
  let area = 0, there = 0, before = 0;
  for (const [t, by] of changes) {
    area += there * (t - before);
    [there, before] = [there + by, t];
  }
  return { N: area / end, X: (1000 * requests.length) / end, R: stays / requests.length };
}
function at(state) {
  const requests = run(state, state.t);
  return { waiting: requests.filter((one) => one.began > state.t).length, served: requests.filter((one) => one.began <= state.t && state.t < one.ended).map((one) => one.by) };
}

const changed = (state) => ({ ...state, held: Math.min(state.held, state.threads) });
const fixed = (value) => (value < 10 ? value.toFixed(1) : String(Math.round(value)));
const ms = (value) => (value === Infinity ? "for ever" : `${fixed(value)} ms`);
// The stay at a load, in service times.
const stayAt = (load, free) => 1 + mustWait(free, load * free) / (free - load * free);
const x = (load) => LEFT + WIDE * Math.min(load, 1), y = (stay) => BOTTOM - (HIGH * Math.min(stay, MOST)) / MOST;
function curve(free, kind) {
  const places = [];
  for (let load = 0; load < 0.995; load += 0.01) {
    if (stayAt(load, free) > MOST) break;
    places.push([x(load), y(stayAt(load, free))]);
  }
  return path(way(places), kind);
}

// A diamond around its place; at the upper edge, if it lies above. The one that is explained stands above the chart: in it, it is a point.
const diamond = ([load, stay]) => path(`M${x(load / 100)} ${y(stay) - 9}l9 9l-9 9l-9 -9z`, "d");

function draw(state, measured) {
  const { threads, held, service } = state, { free, load, stay, there } = model(state), { waiting, served } = at(state);
  const dots = Math.min(waiting, 60), size = Math.min(56, 310 / Math.min(threads, 8)), point = load < 1 ? stay / service : MOST;
  return [346, [
    text(0, 20, `waiting: ${waiting}`, "h"),
    ...Array.from({ length: dots }, (_, i) => circle(11 + (i % 12) * 26, 46 + Math.floor(i / 12) * 26, 9, "B")),
    waiting > dots ? text(0, 184, `and ${waiting - dots} more`, "q") : "",
    text(0, 212, `served: ${served.length} of ${threads} threads`, "h"),
    ...Array.from({ length: threads }, (_, i) => {
      const left = (i % 8) * size, top = 226 + Math.floor(i / 8) * 42, isHeld = i >= free;
      return rect(left, top, size - 6, 36, isHeld ? "silent" : served.includes(i) ? "a" : "box", 4)
        + (isHeld || served.includes(i) ? circle(left + size / 2 - 3, top + 18, 9, isHeld ? "N" : "A") : "");
    }),
    held ? text(0, 226 + 42 * Math.ceil(threads / 8) + 20, "grey: held by a silent client", "q") : "",
    path(`M${LEFT} ${BOTTOM - HIGH}V${BOTTOM}H${LEFT + WIDE}`, "line"),
    text(LEFT - 8, y(1) + 6, "1", "q end"), text(LEFT - 8, y(6) + 6, "6", "q end"), text(LEFT - 8, y(12) + 6, "12", "q end"),
    text(LEFT - 30, 20, "stay, in service times", "h"),
    text(LEFT, 290, "0", "q mid"), text(x(0.5), 290, "load 50 %", "q mid"), text(x(1), 290, "100 %", "q end"),
    free === 1 ? "" : curve(1, "dashed"), free ? curve(free, "curve") : "",
    ...(free === MEASURED && measured.length ? [...measured.map(diamond), path("M530 29l9 9l-9 9l-9 -9z", "d"), text(640, 44, "measured", "end")] : []),
    path(`M${x(load)} ${BOTTOM}V${y(point)}`, "dashed"), circle(x(load), y(point), 9, "B"),
    load < 1 ? text(640, 326, `N = X · R: ${fixed(there)} = ${state.rate}/s · ${fixed(stay)} ms`, "end") : text(640, 326, "the queue grows for ever", "end"),
  ].join("")];
}

function say(state) {
  const { free, load, wait } = model(state);
  if (!free) return "Silent clients hold every thread: all others wait until one of them leaves.";
  if (load >= 1) return `The load is ${Math.round(100 * load)} %: more comes than ${free === 1 ? "one thread" : `${free} threads`} can serve, and the queue grows without end.`;
  const by = free === 1 ? "one thread" : `${free} threads`;
  return `With ${by} at a load of ${Math.round(100 * load)} % a request waits ${ms(wait)} on average and is served for ${state.service} ms.`;
}

const start = { rate: 100, service: 30, threads: 4, held: 0, t: 1240 };
machines.add("pool-queue", {
  title: "A queue in front of a pool of threads, and the stay of a request by the load",
  start,
  controls: [
    { name: "rate", label: "arrivals", values: RATES, show: (value) => `${value}/s` },
    { name: "service", label: "service", values: TIMES, show: (value) => `${value} ms` },
    { name: "threads", label: "threads", values: THREADS },
    { name: "held", label: "held by silent clients", values: HELD },
  ],
  changed, model, draw, say, run, little,
  next: (state) => (state.t < END_MS ? { ...state, t: state.t + STEP_MS } : null),
  again: (state) => ({ ...state, t: 0 }),
  steps: [{ ...start, rate: 40 }, { ...start, rate: 95 }, { ...start, rate: 120, t: 2460 }, { ...start, rate: 130, t: 2460 }, { ...start, rate: 140, t: 12000 },
    { ...start, rate: 10, held: 3 }, { ...start, rate: 10, held: 4 }],
});
}
