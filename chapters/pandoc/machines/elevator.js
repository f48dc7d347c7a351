// The museum disk: readers that each read one file after the other, from disks with an arm. benchmarks/disk/model.c is the original; the
// parameters are its own, and tests/book/test_machines.py compares both.
"use strict";
{
const { text, rect, circle, path, way, count, random } = machines;
const DISK = { rpm: 7200, track_ms: 1, average_ms: 8.5, full_ms: 18, bytes_per_s: 30e6, capacity: 160e9, expire_ms: 500 };
const USED = DISK.capacity / 2; // the files lie on so much of it
const FILE = 102400, BATCH = 16, HALF_TURN = 60000 / DISK.rpm / 2, AVERAGE = 1 / 3;
const READERS = [1, 2, 3, 4, 8, 16, 32, 64, 100], SHOWN_MS = 250, LONG_MS = 20000, WIDE = 290, TOP = 66, HIGH = 226;

// ---- in milliseconds; places are bytes from the edge of the platter

const transfer = (bytes) => (bytes / DISK.bytes_per_s) * 1000;
function seek(distance) {
  if (transfer(distance) < 2 * HALF_TURN) return 0; // within a track there is nowhere to go
  const stroke = distance / DISK.capacity;
  return stroke <= AVERAGE ? DISK.track_ms + (DISK.average_ms - DISK.track_ms) * Math.sqrt(stroke / AVERAGE)
    : DISK.average_ms + ((DISK.full_ms - DISK.average_ms) * (stroke - AVERAGE)) / (1 - AVERAGE);
}
// Until this place is under the head: the arm moves, or what lies between passes by.
function position(head, start) {
  const far = Math.abs(head - start), moved = seek(far) + HALF_TURN;
  return start < head || transfer(far) > moved ? moved : transfer(far);
}

// What the disks do until this time: their arms' ways as [ms, place], and the requests.
function run({ readers, disks, sorted }, until, draw = random(4)) {
  const arms = Array.from({ length: disks }, () => ({ head: 0, request: null, end: Infinity, since: 0, path: [[0, 0]] })), queue = [], all = [];
  let now = 0;
  const next = (arm) => {
    const oldest = queue[0];
    if (!sorted) return oldest;
    if (arm.since >= BATCH && now > oldest.came + DISK.expire_ms) {
      arm.since = 0;
      return oldest;
    }
    arm.since++;
    const lowest = (list) => list.reduce((best, one) => (best && best.place <= one.place ? best : one), null);
    return lowest(queue.filter((one) => one.place >= arm.head)) ?? lowest(queue);
  };
  const dispatch = () => {
    while (queue.length) {
      const idle = arms.filter((arm) => !arm.request).sort((a, b) => position(a.head, queue[0].place) - position(b.head, queue[0].place));
      if (!idle.length) return;
      const [arm] = idle, request = idle.length === 1 ? next(arm) : queue[0];
      queue.splice(queue.indexOf(request), 1);
      const there = now + position(arm.head, request.place);
      Object.assign(arm, { request, end: there + transfer(FILE), head: request.place + FILE });
      Object.assign(request, { arm: arms.indexOf(arm), done: arm.end });
      arm.path.push([now, arm.path.at(-1)[1]], [there, request.place], [arm.end, request.place]);
    }
  };
  const ask = () => {
    const request = { place: Math.floor(draw() * (USED - FILE)), came: now, done: Infinity };
    queue.push(request);
    all.push(request);
    dispatch();
  };
  for (let i = 0; i < readers; i++) ask();
  while (now < until) {
    const arm = arms.reduce((first, one) => (one.end < first.end ? one : first));
    now = arm.end;
    Object.assign(arm, { request: null, end: Infinity });
    dispatch();
    ask();
  }
  return { arms, requests: all };
}
const read = ({ requests }, until) => requests.filter((one) => one.done <= until).sort((a, b) => a.done - b.done);

const runs = new Map(); // of each setting once: it is drawn many times
function longRun({ readers, disks }, sorted) {
  const key = `${readers} ${disks} ${sorted}`;
  if (!runs.has(key)) runs.set(key, run({ readers, disks, sorted }, LONG_MS));
  return runs.get(key);
}
const model = (state) => Object.fromEntries([["fifo", false], ["elevator", true]].map(([name, sorted]) => {
  const long = longRun(state, sorted);
  return [name, { read: read(long, state.t), rate: (1000 * read(long, LONG_MS).length) / LONG_MS, run: long }];
}));

function panel(state, { read: done, rate, run: { arms, requests } }, title, left) {
  const x = (place) => left + (WIDE * place) / USED, y = (ms) => TOP + (HIGH * ms) / SHOWN_MS, now = state.t;
  const waiting = requests.filter((one) => one.came <= now && now < one.done);
  return [
    text(left, 20, title, "h"), text(left, 46, `${done.length} files, ${Math.round(rate)} a second`),
    rect(left, TOP, WIDE, HIGH, "kernel"), path(`M${left} ${y(now).toFixed(1)}h${WIDE}`, "dashed"),
    ...arms.map(({ path: places }, at) => {
      const seen = places.filter(([ms]) => ms <= now), after = places[seen.length], [ms, from] = seen.at(-1);
      if (after && after[0] > ms) seen.push([now, from + ((after[1] - from) * (now - ms)) / (after[0] - ms)]);
      return path(way(seen.map(([when, place]) => [x(place), y(when)])), at ? "way-b" : "way-a");
    }),
    ...done.map((one) => circle(x(one.place), y(one.done), 4, one.arm ? "B" : "A")),
    ...waiting.map((one) => rect(x(one.place) - 2, y(now) - 6, 4, 12, "N")),
  ].join("");
}
function draw(state) {
  const { fifo, elevator } = model(state);
  return [346, [
    panel(state, fifo, "in order of arrival", 0), panel(state, elevator, "by elevator", 350),
    text(320, TOP + 8, "0", "q mid"), text(320, TOP + HIGH, SHOWN_MS, "q mid"), text(320, TOP + HIGH / 2 - 8, "time", "q mid"), text(320, TOP + HIGH / 2 + 14, "ms", "q mid"),
    text(WIDE / 2, 318, "place on the disk", "q mid"), text(350 + WIDE / 2, 318, "place on the disk", "q mid"),
    text(0, 342, state.disks === 1 ? "line: the way of the arm · dot: a file is read" : "a line for each arm · dot: a file is read", "q"),
    text(640, 342, "bars: waiting", "q end"),
  ].join("")];
}

function say(state) {
  const { fifo, elevator } = model(state), disks = state.disks === 1 ? "one disk" : "two disks";
  if (state.readers <= state.disks) return `${state.readers === 1 ? "One reader" : "Two readers"} and ${disks}: no request waits for an arm, so there is nothing to sort.`;
  return `By elevator an arm takes what lies on its way: for ${state.readers} readers ${disks} give ${Math.round(elevator.rate)} files a second `
    + `in place of ${Math.round(fifo.rate)}.`;
}

const start = { readers: 16, disks: 2, t: SHOWN_MS };
machines.add("elevator", {
  title: "The ways of the arms of two disks, in order of arrival and by elevator",
  start,
  controls: [{ name: "readers", label: "readers", values: READERS, show: count }, { name: "disks", label: "disks", values: [1, 2] }],
  model, draw, say, run, read, DISK,
  next: (state) => (state.t < SHOWN_MS ? { ...state, t: Math.min(SHOWN_MS, state.t + 4) } : null),
  again: (state) => ({ ...state, t: 0 }),
  steps: [{ ...start, readers: 1 }, { ...start, readers: 2 }, { ...start, readers: 8 }, { ...start, t: 100 }, start, { ...start, readers: 100 }],
});
}
