// Steps through a recorded server: one "now", shared by lanes, strip, code and state. The lanes stand in the page already, as
// quest/book/player has drawn them; here they get a line that moves, and what is true at that moment beside them.
//
// A stop is a place where now can stand: the start of a call, or the end of a sleep. Nothing is drawn anew but what has changed, and
// the focus stays where it is.
"use strict";

(() => {
const CALM = matchMedia("(prefers-reduced-motion: reduce)");
const GLIDE_MS = 250, REST_MS = 1200, WORD_MS = 250;
const OPENS = /^(accept|open|socket|epoll_create|dup|eventfd|signalfd|timerfd_create|kqueue|pipe)/, READS = /^(recv|read)/, TRANSFERS = /^(recv|read|pread|send|write|splice)/;
const KEYS = [
  ["→ ←", "next call, call before"], ["Shift+→ ←, N P", "next moment, moment before"], ["Home End", "begin, end"],
  ["↑ ↓", "other process or thread"], ["[ ]", "function that called, function called"], ["Space", "play"],
  ["T", "true time"], ["X", "the other server"], ["Esc", "leave"],
];
// What is drawn, beside a sample of it: lane, classes, what it means.
const SIGNS = [
  ["task", "works A", "thick: works, for A"], ["task", "works N", "works, for no client"], ["task", "ticked", "white tick: a system call"], ["task", "sleeps B", "thin: asleep; in colour, for B only"],
  ["task", "zombie", "ended, not yet collected by its parent"], ["client", "silent B", "client has sent half a request, and is silent"], ["client", "waits C", "client waits for its page"], ["task", "cut", "time that is cut out"],
];
// How many times slower than it was; 0: from moment to moment. A cut is passed in CUT_MS.
const PACES = [[0, "by moments"], [20, "20 times slower"], [100, "100 times slower"], [500, "500 times slower"]], CUT_US = 40000, CUT_MS = 1500;

const make = (tag, name, text) => Object.assign(document.createElement(tag), { className: name || "", textContent: text ?? "" });
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
const fill = (element, children) => element.replaceChildren(...children);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const toggle = (element, name, on) => { if (element.classList.contains(name) !== on) element.classList.toggle(name, on); };

// ---- one recording: what was so, and when ------------------------------------------------------------------------------

class Side {
  constructor(data) {
    Object.assign(this, data);
    this.tasks = data.tasks.map(([name, kind, born, ended, parent]) => ({ name, kind, born: born ?? -Infinity, ended: ended ?? Infinity, parent }));
    this.clients = data.clients.map(([letter, , times, , , acts]) => ({ letter, connected: times[1], done: times[5] ?? Infinity, acts }));
    this.calls = data.calls.map(([task, t, took, name, fd, result, letter, stack, note, asleep], index) => ({
      index, task, t, end: took === null ? Infinity : t + took, name, fd, result, letter, stack, note,
      sleeps: Boolean(asleep), accepts: name.startsWith("accept"), for: asleep && !name.startsWith("accept") ? letter : "",
    }));
    this.moments = data.moments.map(([t, rank, task, call, head, rest, show], index) => ({ index, t, task, call, head, rest, show, rank }));
    this.watches = this.uses("epoll_ctl");
    this.of = this.tasks.map((_, task) => this.calls.filter((call) => call.task === task));
    this.stops = this.calls.flatMap((call) => {
      const begin = { t: call.t, call: call.index };
      return call.sleeps && call.end < Infinity ? [begin, { t: call.end, call: call.index, over: true }] : [begin];
    }).filter((stop) => stop.t >= 0).sort((a, b) => a.t - b.t);
  }

  uses(name) { return this.calls.some((call) => call.name === name); }
  // The call that a task is in at t, or has made last.
  last(task, t) {
    const calls = this.of[task];
    let low = 0, high = calls.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (calls[middle].t <= t) low = middle + 1; else high = middle;
    }
    return calls[low - 1];
  }
  asleep(task, t) {
    const call = this.last(task, t);
    return call && call.sleeps && t < call.end ? call : null;
  }
  // It has made a call, and is not asleep in one: what makes none at all does not work.
  works(task, t) {
    const call = this.last(task, t);
    return call && !this.asleep(task, t) ? call : null;
  }
  alive(task, t) { return this.tasks[task].born <= t && t < this.tasks[task].ended; }
  living(t) { return this.tasks.map((_, task) => task).filter((task) => this.alive(task, t)); }

  // Connected, and no accept() has returned it yet.
  queue(t) {
    return this.clients.filter(({ letter, connected, done }) => {
      const accept = this.calls.find((call) => call.accepts && call.letter === letter);
      return connected <= t && t < (accept ? accept.end : done);
    }).map((client) => client.letter);
  }
  // Sent by the client, and not received by the server.
  ready(t) {
    return this.clients.filter(({ letter, acts }) => {
      const sent = acts.filter(([at, act]) => act === "send" && at <= t).reduce((sum, [, , bytes]) => sum + bytes, 0);
      const read = this.calls.filter((call) => call.letter === letter && READS.test(call.name) && call.end <= t && call.result > 0)
        .reduce((sum, call) => sum + call.result, 0);
      return sent > read;
    }).map((client) => client.letter);
  }
  // Whose descriptors a task has: threads share those of the process.
  owner(task) {
    while (this.tasks[task].kind === "thread") task = this.tasks[task].parent;
    return task;
  }
  // number -> what it is. A child begins with what its parent holds then.
  descriptors(task, t) {
    const owner = this.owner(task), { parent, born } = this.tasks[owner], inherits = parent !== null && born > -Infinity;
    const held = new Map(inherits ? this.descriptors(parent, born) : this.open.filter(([of]) => of === owner).map(([, fd, what]) => [fd, what]));
    for (const call of this.calls) {
      if (call.end > t || this.owner(call.task) !== owner || call.end < born) continue;
      if (OPENS.test(call.name) && call.result >= 0) held.set(call.result, call.accepts ? call.letter || "?" : call.note || call.name);
      if (call.name === "close") held.delete(call.fd);
    }
    return [...held].filter(([fd]) => fd > 2).sort((a, b) => a[0] - b[0]);
  }
  // What the kernel has been told to watch.
  interest(t) {
    const watched = new Map();
    for (const call of this.calls) {
      if (call.end > t) continue;
      if (call.name === "epoll_ctl") call.note.startsWith("del") ? watched.delete(call.fd) : watched.set(call.fd, call.letter);
      if (call.name === "close") watched.delete(call.fd);
    }
    return [...watched.values()].filter(Boolean);
  }
  // Asked of the ring, and answered later. Of what says nothing when it has succeeded, it is not known how long it took.
  inRing(t) {
    const ring = this.ring ?? [];
    return ring.filter(([at, what, opcode, letter], index) => {
      if (what !== "submit" || at > t) return false;
      const answer = ring.slice(index + 1).find((one) => one[1] === "complete" && one[2] === opcode && one[3] === letter);
      return answer && t < answer[0];
    }).map(([, , opcode, letter]) => [opcode, letter]);
  }
  // Where now stands if nothing else is said: the last stop not behind t.
  stopAt(t) {
    let found = this.stops[0];
    for (const stop of this.stops) { if (stop.t > t) break; found = stop; }
    return found;
  }
  momentAt(t) { return this.moments.filter((moment) => moment.t <= t).length - 1; }
}

const resultOf = (call) => {
  if (call.result === null || call.end === Infinity) return "";
  if (call.result < 0) return call.note.replace("interrupted by ", "");
  return OPENS.test(call.name) ? "→ " + call.result : call.result && !/^(fork|pthread_create|wait)/.test(call.name) ? String(call.result) : "";
};

// ---- the player --------------------------------------------------------------------------------------------------------

class Player {
  constructor(root) {
    this.root = root;
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    this.name = data.sides.map((side) => side.server).join("+");
    [this.points, this.units] = data.scale;
    this.sides = data.sides.map((side) => new Side(side));
    this.side = 0;
    this.say = root.querySelector(".say");
    this.lanes = root.querySelector(".lanes");
    this.over = root.querySelector(".over");
    this.line = root.querySelector(".over .now");
    this.groups = [...root.querySelectorAll(".group")];
    this.dots = this.groups.map((group) => [...group.querySelectorAll(".dot")]);
    this.slide = root.classList.contains("slide");
    this.build();
    this.listen();
    const best = this.now.best;
    this.go(best < 0 ? { t: 0 } : this.now.moments[best], { silent: true });
    root.classList.add("live");
    this.fit();
    new ResizeObserver(() => { this.fit(); this.draw(); }).observe(this.lanes);
    if (!this.slide) this.readAddress();
  }
  get now() { return this.sides[this.side]; }

  // ---- time and place

  place(t) {
    const { points, units, linear } = this;
    const last = points.length - 1;
    if (linear) return clamp((t - points[0]) / (points[last] - points[0]), 0, 1);
    if (t <= points[0]) return 0;
    for (let at = 1; at <= last; at++) {
      if (t <= points[at]) return (units[at - 1] + (t - points[at - 1]) / (points[at] - points[at - 1]) * (units[at] - units[at - 1])) / units[last];
    }
    return 1;
  }
  time(place) {
    const { points, units, linear } = this;
    const last = points.length - 1;
    if (linear) return points[0] + place * (points[last] - points[0]);
    const unit = place * units[last];
    for (let at = 1; at <= last; at++) {
      if (unit <= units[at]) return points[at - 1] + (unit - units[at - 1]) / (units[at] - units[at - 1]) * (points[at] - points[at - 1]);
    }
    return points[last];
  }
  // T: every place is turned into its time and back into a place on the other scale.
  trueTime() {
    const turn = (part) => { this.linear = !this.linear; const t = this.time(part); this.linear = !this.linear; return this.place(t); };
    this.linear = !this.linear;
    for (const element of this.lanes.querySelectorAll(".track > *, .over > *, .field > *")) {
      const { left, width } = element.style;
      if (!left) continue;
      const begin = parseFloat(left) / 100, from = turn(begin);
      element.style.left = 100 * from + "%";
      if (width) element.style.width = 100 * (turn(begin + parseFloat(width) / 100) - from) + "%";
    }
    for (const path of this.lanes.querySelectorAll(".ticks path")) {
      path.setAttribute("d", path.getAttribute("d").replace(/M([\d.]+)/g, (_, x) => "M" + (1000 * turn(x / 1000)).toFixed(2)));
    }
    for (const cut of this.lanes.querySelectorAll(".cut, .cut-note")) cut.hidden = this.linear;
    toggle(this.lanes, "linear", this.linear);
    this.fit();
    this.draw();
  }
  // A label is as long as its bar allows: the longest of its texts that fits, or none.
  fit() {
    const labels = [...this.lanes.querySelectorAll(".says")];
    for (const label of labels) {
      label.firstChild.textContent = label.dataset.says.split("|")[0];
      label.style.visibility = "";
    }
    let open = labels;
    for (let at = 0; open.length; at++) {
      open = open.filter((label) => label.firstChild.offsetWidth + 6 > label.clientWidth);
      for (const label of open) {
        const text = label.dataset.says.split("|")[at + 1];
        if (text) label.firstChild.textContent = text; else label.style.visibility = "hidden";
      }
      open = open.filter((label) => label.style.visibility !== "hidden");
    }
    for (const letter of this.lanes.querySelectorAll(".task .works")) toggle(letter, "tight", letter.clientWidth < 17);
    const scroll = this.lanes.parentElement, wide = scroll.scrollWidth > scroll.clientWidth + 1;
    this.overview.hidden = !wide;
    if (wide) this.view();
  }
  view() {
    const scroll = this.lanes.parentElement, [seen, line] = this.overview.children;
    seen.style.left = 100 * scroll.scrollLeft / scroll.scrollWidth + "%";
    seen.style.width = 100 * scroll.clientWidth / scroll.scrollWidth + "%";
    line.style.left = 100 * this.place(this.t) + "%";
  }

  // ---- moving

  // stop: { t, call } or a moment. The call is where the code stands.
  go(stop, { silent = false, task = null } = {}) {
    const known = stop.call ?? null;
    this.t = clamp(stop.t, this.points[0], this.points[this.points.length - 1]);
    this.call = known === null ? this.now.stopAt(this.t).call : known;
    this.task = task ?? this.now.calls[this.call].task;
    this.over_ = Boolean(stop.over) || (stop.head !== undefined && known !== null && stop.t >= this.now.calls[known].end);
    this.moment = stop.head === undefined ? this.now.moments.find((one) => one.t === this.t && one.call === this.call) : stop;
    this.frame = null;
    this.draw();
    if (!silent) this.writeAddress();
  }
  step(by) {
    const { stops } = this.now;
    const at = by > 0 ? stops.findIndex((stop) => stop.t > this.t) : stops.findLastIndex((stop) => stop.t < this.t);
    if (at >= 0) this.go(stops[at]);
  }
  jump(by) {
    const { moments } = this.now;
    const at = by > 0 ? moments.findIndex((one) => one.t > this.t) : moments.findLastIndex((one) => one.t < this.t);
    if (at < 0) return false;
    this.go(moments[at]);
    return true;
  }
  otherTask(by) {
    const living = this.now.living(this.t);
    const at = living.indexOf(this.task);
    const task = living[clamp(at + by, 0, living.length - 1)] ?? this.task;
    const call = this.now.last(task, this.t) ?? this.now.of[task][0];
    if (!call) return;
    this.task = task;
    this.call = call.index;
    this.over_ = call.sleeps && this.t >= call.end;
    this.moment = undefined;
    this.frame = null;
    this.draw();
  }
  outer(by) {
    const stack = this.now.stacks[this.now.calls[this.call].stack] ?? [];
    this.frame = clamp((this.frame ?? stack.length - 1) + by, 0, stack.length - 1);
    this.drawCode();
  }
  swap() {
    if (this.sides.length < 2) return;
    this.side = 1 - this.side;
    this.go({ t: this.t });
  }
  play(on = !this.timer) {
    clearTimeout(this.timer);
    this.timer = 0;
    toggle(this.lanes, "gliding", on && !CALM.matches);
    this.say.setAttribute("aria-live", on ? "off" : "polite");
    put(this.playing.firstChild, on ? "■" : "▶");
    this.playing.setAttribute("aria-label", on ? "stop" : "play");
    if (!on) return;
    const { moments } = this.now;
    if (moments.length && this.t >= moments[moments.length - 1].t) this.go({ t: this.points[0] }, { silent: true });
    if (Number(this.pace?.value)) return this.run(Number(this.pace.value));
    const next = () => {
      if (!this.jump(1)) return this.play(false);
      const words = this.say.textContent.split(/\s+/).length;
      this.timer = setTimeout(next, GLIDE_MS + REST_MS + WORD_MS * words);
    };
    this.timer = setTimeout(next, GLIDE_MS);
  }

  // Time goes on by itself, so many times slower; where no motion is wanted, from stop to stop.
  run(slower) {
    toggle(this.lanes, "gliding", false);
    const { points } = this, end = points[points.length - 1];
    let before = performance.now(), t = this.t;
    const tick = () => {
      const now = performance.now(), at = points.findIndex((point) => point > t), gap = at > 0 ? points[at] - points[at - 1] : 0;
      const cut = gap >= CUT_US && !this.linear ? gap / CUT_MS : 0;
      t += (now - before) * Math.max(1000 / slower, cut);
      before = now;
      const stop = CALM.matches ? this.now.stopAt(t) : { t };
      if (stop.t !== this.t) this.go(stop, { silent: true });
      if (t >= end) return this.play(false);
      this.timer = setTimeout(tick, 33);
    };
    this.timer = setTimeout(tick, 33);
  }

  // ---- drawing

  draw() {
    const { now, t } = this;
    this.line.style.left = 100 * this.place(t) + "%";
    if (!this.overview.hidden) this.view();
    this.drawCaption();
    this.dots.forEach((dots, side) => {
      const here = this.moment && side === this.side ? this.moment.index : -1;
      dots.forEach((dot, at) => toggle(dot, "here", at === here));
    });
    this.groups.forEach((group, side) => toggle(group, "active", side === this.side));
    this.drawStrip();
    this.drawCode();
    this.drawState();
    const { moments } = now;
    fill(this.count, [make("span", "wide", "moment "), `${now.momentAt(t) + 1}/${moments.length}`]);
    this.buttons.back.toggleAttribute("disabled", !moments.some((one) => one.t < t));
    this.buttons.next.toggleAttribute("disabled", !moments.some((one) => one.t > t));
    this.lanes.setAttribute("aria-valuemax", now.stops.length - 1); // each side has its own
    this.lanes.setAttribute("aria-valuenow", Math.max(0, now.stops.findLastIndex((stop) => stop.t <= t)));
    this.lanes.setAttribute("aria-valuetext", this.say.textContent);
  }
  drawCaption() {
    const { moment } = this, call = this.now.calls[this.call], task = this.now.tasks[call.task];
    let title, rest = "";
    const of = call.letter && !call.accepts ? `, for ${call.letter}` : "";
    if (moment) ({ head: title, rest } = moment);
    else if (call.sleeps && !this.over_) title = `${task.name} sleeps in ${call.name}()${call.for ? ", for " + call.for : ""}.`;
    else {
      title = `${task.name}: ${call.name}()${of}.`;
      const result = resultOf(call);
      if (result.startsWith("→")) rest = `It returns descriptor ${call.result}.`;
      else if (call.result < 0) rest = `It says ${result}.`;
      else if (TRANSFERS.test(call.name) && result) rest = `${result} bytes.`;
    }
    const [bold, after] = this.say.childNodes.length === 2 ? this.say.childNodes : (fill(this.say, [make("b"), document.createTextNode("")]), this.say.childNodes);
    put(bold, title);
    put(after, rest ? " " + rest : "");
  }
  // The calls of this task between two sleeps; at a sleep those before it and after it.
  drawStrip() {
    const { now, task } = this, calls = now.of[task], here = this.now.calls[this.call].task === task ? calls.indexOf(now.calls[this.call]) : -1;
    let from = Math.max(0, here), to = from;
    while (from > 0 && !(calls[from - 1].sleeps)) from--;
    if (calls[from - 1]?.sleeps && here > from) from--;
    while (to < calls.length - 1 && (to === here || !calls[to].sleeps)) to++;
    if (this.slide) [from, to] = [Math.max(from, here - 3), Math.min(to, Math.max(here, 0) + 4)]; // what a row holds
    if (from === this.strip.from && to === this.strip.to && task === this.strip.task && this.side === this.strip.side) {
      this.chips.forEach((chip, at) => this.markChip(chip, calls[from + at]));
    } else {
      this.strip.of.textContent = now.tasks[task].name;
      this.chips = calls.slice(from, to + 1).map((call) => this.chip(call));
      fill(this.strip.element, [this.strip.of, ...this.chips]);
      Object.assign(this.strip, { from, to, task, side: this.side });
    }
    const lit = this.chips[here - from], strip = this.strip.element;
    if (lit && strip.scrollWidth > strip.clientWidth) strip.scrollLeft = lit.offsetLeft - strip.clientWidth / 2 + lit.offsetWidth / 2;
    if (lit) strip.scrollTop = lit.offsetTop - strip.offsetTop - lit.offsetHeight - 8;
  }
  chip(call) {
    const chip = make("button", "chip " + (call.accepts && call.sleeps ? "" : call.letter), call.name);
    chip.type = "button";
    chip.tabIndex = -1;
    const lasts = call.end < Infinity ? `${Math.round((call.end - call.t) / 1000)} ms` : "sleeps";
    const result = call.sleeps && call.t >= 0 ? lasts : resultOf(call);
    if (result) chip.append(" ", make("small", "", result));
    if (/^\d+$/.test(result) && TRANSFERS.test(call.name)) chip.append(make("small", "wide", " bytes"));
    chip.title = this.toSay(call, result);
    chip.onclick = () => this.go({ t: Math.max(call.t, this.points[0]), call: call.index });
    this.markChip(chip, call);
    return chip;
  }
  toSay(call, result) {
    const of = call.letter && !call.accepts ? `, for ${call.letter}` : "", name = `${call.name}()${of}`;
    if (call.sleeps) return `${name}: asleep${call.end < Infinity ? `, ${result} in the traced run` : ""}`;
    if (result.startsWith("→")) return `${name} returns descriptor ${call.result}`;
    return result ? `${name} ${call.result < 0 ? "says" : "returns"} ${result}${TRANSFERS.test(call.name) && call.result >= 0 ? " bytes" : ""}` : name;
  }
  markChip(chip, call) {
    toggle(chip, "later", call.t > this.t && call.index !== this.call);
    toggle(chip, "here", call.index === this.call);
  }
  drawCode() {
    const { now } = this, call = now.calls[this.call], stack = now.stacks[call.stack] ?? [];
    const frame = clamp(this.frame ?? stack.length - 1, 0, stack.length - 1);
    const names = stack.map((site, at) => {
      const button = make("button", at === frame ? "shown" : "", now.sites[site][0]);
      button.type = "button";
      button.tabIndex = -1;
      button.onclick = () => { this.frame = at; this.drawCode(); };
      return button;
    });
    const path = [...names, make("span", "call", call.name + "()")];
    const key = [this.side, call.stack, call.name, frame, this.root.clientWidth].join();
    if (key !== this.path.dataset.key) {
      this.path.dataset.key = key;
      // The innermost that fit in a line.
      for (let from = this.slide ? Math.max(0, path.length - 4) : 0; from <= frame; from++) {
        fill(this.path, path.slice(from).flatMap((one, at) => at ? [" › ", one] : from ? ["… › ", one] : [one]));
        if (this.path.scrollWidth <= this.path.clientWidth) break;
      }
    }
    const site = stack[frame];
    if (site === undefined) {
      fill(this.code, [make("span", "l", "(no line of ours: the recording has no stack here)")]);
      this.code.dataset.key = "";
      return put(this.from, "");
    }
    const [, file, line] = now.sites[site], excerpt = now.codeOf[site], [first, text] = now.code[excerpt];
    if (this.code.dataset.key !== this.side + "," + excerpt) {
      this.code.dataset.key = this.side + "," + excerpt;
      const lines = text.split("\n").map((one, at) => [first + at, one]).filter(([, one]) => one !== "\f");
      const indent = Math.min(...lines.filter(([, one]) => one.trim()).map(([, one]) => one.search(/\S/)));
      fill(this.code, lines.map(([number, one]) => {
        const element = make("span", "l", one.slice(indent));
        element.dataset.n = number;
        return element;
      }));
    }
    for (const element of this.code.children) toggle(element, "lit", Number(element.dataset.n) === line);
    const lit = this.code.querySelector(".lit");
    if (lit) {
      const high = lit.parentElement.firstChild.offsetHeight;
      // Above the middle: so it is seen where the window is low.
      this.code.scrollTop = Math.round((lit.offsetTop - (this.code.clientHeight - lit.offsetHeight) / 3) / high) * high;
    }
    put(this.from, `${file}, line ${line}`);
  }
  drawState() {
    const { now, t } = this;
    this.sides.forEach((side, at) => {
      const box = this.sides.length > 1 ? this.groupSquares[at] : at === this.side ? this.fields.server : null;
      if (box) this.squares(box, side, t);
    });
    const groups = new Map();
    for (const task of now.living(t)) {
      const call = now.asleep(task, t);
      if (!call) continue;
      const key = call.name + " " + call.for;
      groups.set(key, [...(groups.get(key) ?? []), task]);
    }
    this.rows("asleep", [...groups].map(([key, tasks]) => {
      const [name, letter] = key.split(" "), one = now.tasks[tasks[0]];
      const kinds = one.kind === "thread" ? "threads" : "processes";
      const who = tasks.length > 2 ? `${tasks.length} ${kinds}` : tasks.map((task) => now.tasks[task].name).join(" and ");
      return [`${who} in ${name}()` + (letter ? ", for " : ""), letter];
    }));
    const asIs = (letters) => letters.map((letter) => ["", letter]);
    if (this.fields.queue) this.rows("queue", asIs(now.queue(t)));
    if (this.fields.ready) this.rows("ready", asIs(now.ready(t)));
    if (this.fields.ring) this.rows("ring", now.inRing(t).map(([opcode, letter]) => [opcode + (letter ? ", for " : ""), letter]));
    if (this.fields.interest) this.rows("interest", asIs(now.interest(t)));
    if (this.fields.descriptors) {
      const held = now.descriptors(this.task, t);
      put(this.fields.descriptors.previousElementSibling, `descriptors of ${now.tasks[this.task].name}`);
      this.rows("descriptors", held.length ? [held] : [], true);
    }
    const show = this.moment?.show;
    // What goes through a ring strace cannot see: what would follow from calls alone would be wrong.
    const calls = !now.uses("io_uring_enter"), shown = { queue: calls, ready: calls, descriptors: calls, interest: now.watches, ring: Boolean(now.ring) };
    for (const [name, field] of Object.entries(this.fields)) {
      field.parentElement.style.order = name === show ? -1 : "";
      // A slide has room for two: what is spoken of, and who sleeps.
      const two = [this.fields[show] ? show : "server", show === "asleep" ? "server" : "asleep"];
      field.parentElement.hidden = shown[name] === false || (this.slide && !two.includes(name));
    }
  }
  rows(name, rows, inline = false) {
    const field = this.fields[name];
    const html = JSON.stringify(rows);
    if (field.dataset.key === html) return;
    field.dataset.key = html;
    const tag = (letter) => make("span", "tag " + letter, letter);
    if (!rows.length) return fill(field, [make("span", "none", "none")]);
    if (inline) {
      return fill(field, rows[0].flatMap(([fd, what]) => [make("b", "", String(fd)), " ", /^[A-D]$/.test(what) ? tag(what) : what, "  "]));
    }
    fill(field, rows.map(([text, letter]) => {
      const line = make(text ? "p" : "span", "", text);
      if (letter) line.append(tag(letter), " ");
      return line;
    }));
  }
  squares(box, side, t) {
    const living = side.living(t);
    const signs = living.map((task) => {
      const sleep = side.asleep(task, t), work = side.works(task, t);
      return work ? ["busy", work.letter || ""] : sleep && sleep.for ? ["one", sleep.for] : ["", ""];
    });
    const key = signs.join();
    if (box.dataset.key === key) return;
    box.dataset.key = key;
    fill(box, signs.map(([kind, letter], at) => {
      const square = make("span", `sq ${kind} ${letter}${at === 0 && living.length > 1 ? " main" : ""}`, letter || (at === 0 && living.length > 1 ? "m" : ""));
      square.title = side.tasks[living[at]].name + (kind === "busy" ? " works" : " sleeps");
      return square;
    }));
  }

  // ---- what stands around the lanes

  build() {
    const { root } = this, button = (name, text, act, label) => {
      const element = Object.assign(make("button", name), { type: "button", onclick: act });
      // Of "‹ moment" a phone shows "‹".
      element.append(...text.split(/( moment(?= |$)| call$|^call | play$)/).filter(Boolean).map((part) => make("span", /^ moment$|call|play/.test(part) ? "wide" : "", part)));
      if (label) element.setAttribute("aria-label", label);
      return element;
    };
    this.strip = { element: make("div", "strip"), of: make("span", "of") };
    this.strip.element.tabIndex = 0; // it scrolls where it is long
    this.strip.element.setAttribute("role", "group");
    this.strip.element.setAttribute("aria-label", "Calls");
    this.overview = make("div", "overview");
    this.overview.append(make("i"), make("i", "now"));
    this.overview.hidden = true;
    this.playing = button("", "▶ play", () => this.play(), "play");
    this.count = make("span", "count");
    this.buttons = {
      back: button("", "‹ moment", () => this.jump(-1), "moment before"), next: button("main", "next moment ›", () => this.jump(1), "next moment"),
    };
    const row = make("div", "buttons");
    this.pace = make("select", "rare pace");
    this.pace.append(...PACES.map(([value, text]) => Object.assign(make("option", "", text), { value })));
    this.pace.setAttribute("aria-label", "How it plays");
    this.pace.onchange = () => { if (this.timer) this.play(true); };
    row.append(this.buttons.back, this.buttons.next, button("", "‹ call", () => this.step(-1), "call before"), button("", "call ›", () => this.step(1), "next call"), this.playing, this.pace,
      ...(this.sides.length > 1 ? [button("rare", "other server", () => this.swap())] : []), button("", "?", () => this.help(), "keys and signs"),
      make("span", "hint", "thick works, thin sleeps, a white tick is a call (?: all signs)"), this.count);
    this.row = row;
    const below = make("div", "below"), left = make("div"), state = make("div", "state");
    this.path = make("p", "path");
    this.code = make("pre", "code");
    this.code.tabIndex = 0;
    this.code.setAttribute("role", "region");
    this.code.setAttribute("aria-label", `Source, ${this.name}`);
    this.from = make("p", "from");
    left.append(this.path, this.code, this.from);
    this.fields = {};
    const names = { server: "server", asleep: "asleep", queue: "connected, not accepted", ready: "sent, not read", interest: "interest list", ring: "in the ring", descriptors: "descriptors" };
    for (const [name, title] of Object.entries(names)) {
      if (name === "ring" && !this.sides.some((side) => side.ring)) continue;
      if (name === "interest" && !this.sides.some((side) => side.watches)) continue;
      if (name === "server" && this.sides.length > 1) continue;
      const box = make("div"), field = make("div", name === "server" ? "squares" : "");
      box.append(make("p", "label", title), field);
      this.fields[name] = field;
      state.append(box);
    }
    state.style.display = "";
    below.append(left, state);
    this.groupSquares = this.sides.length > 1 ? this.groups.map((group) => {
      const box = make("div", "squares");
      group.querySelector(".server").after(box);
      return box;
    }) : [];
    this.lanes.parentElement.after(this.overview, this.strip.element, ...(this.slide ? [] : [row]), below);
    const { lanes } = this;
    lanes.tabIndex = 0;
    for (const [name, value] of Object.entries({ role: "slider", "aria-label": `Time: ${this.name}`, "aria-valuemin": 0 })) lanes.setAttribute(name, value);
    this.say.setAttribute("aria-live", "polite");
  }
  help() {
    if (this.keys) { this.keys.remove(); this.keys = null; return; }
    this.keys = make("div", "keys");
    const cut = this.lanes.querySelector(".cut svg");
    const signs = SIGNS.filter(([, classes]) => cut || classes !== "cut").map(([lane, classes, text]) => {
      const one = make("span", "sign"), box = make("span", "track sample"), sign = make("i", classes === "ticked" ? "works A" : classes);
      if (classes === "ticked") sign.append(...[0, 1, 2].map(() => make("u")));
      box.append(classes === "cut" ? cut.cloneNode(true) : sign);
      one.append(Object.assign(make("span", lane), { ariaHidden: "true" }), text);
      one.firstChild.append(box);
      return one;
    });
    const signed = make("p", "signs"), keyed = make("p", "of-keys");
    signed.append(...signs);
    keyed.append(...KEYS.flatMap(([keys, what], at) => [at ? " · " : "", make("kbd", "", keys), " " + what]));
    this.keys.append(signed, keyed);
    this.row.after(this.keys);
  }

  // ---- what the reader does

  listen() {
    const { root, lanes } = this;
    root.addEventListener("keydown", (event) => this.key(event));
    const at = (event) => {
      const box = this.over.getBoundingClientRect();
      const group = event.target.closest?.(".group");
      const side = group ? Number(group.dataset.side) : this.side;
      return { t: this.time(clamp((event.clientX - box.left) / box.width, 0, 1)), side, lane: event.target.closest?.(".lane.task")?.dataset.task, dot: event.target.closest?.(".dots") };
    };
    lanes.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.play(false);
      this.drag = { x: event.clientX, moved: false, ...at(event) };
      this.side = this.drag.side;
      lanes.setPointerCapture(event.pointerId);
    });
    lanes.addEventListener("pointermove", (event) => {
      if (!this.drag) return;
      this.drag.moved ||= Math.abs(event.clientX - this.drag.x) > 3;
      if (!this.drag.moved) return;
      cancelAnimationFrame(this.frameAsked);
      this.frameAsked = requestAnimationFrame(() => this.go({ t: at(event).t }, { silent: true }));
    });
    lanes.addEventListener("pointerup", (event) => {
      const { drag } = this;
      this.drag = null;
      if (!drag) return;
      if (drag.moved) return this.writeAddress();
      const near = (list) => list.reduce((best, one) => Math.abs(this.place(one.t) - this.place(drag.t)) < Math.abs(this.place(best.t) - this.place(drag.t)) ? one : best);
      if (drag.dot && this.now.moments.length) return this.go(near(this.now.moments));
      const mine = drag.lane === undefined ? [] : this.now.stops.filter((stop) => this.now.calls[stop.call].task === Number(drag.lane));
      const call = drag.lane === undefined ? null : this.now.asleep(Number(drag.lane), drag.t);
      if (call) return this.go({ t: drag.t, call: call.index });
      this.go(near(mine.length ? mine : this.now.stops));
    });
    lanes.addEventListener("pointercancel", () => { this.drag = null; });
    this.overview.addEventListener("pointerdown", (event) => {
      const box = this.overview.getBoundingClientRect(), scroll = lanes.parentElement;
      scroll.scrollLeft = (event.clientX - box.left) / box.width * scroll.scrollWidth - scroll.clientWidth / 2;
    });
    lanes.parentElement.addEventListener("scroll", () => { if (!this.overview.hidden) this.view(); }, { passive: true });
    new IntersectionObserver((seen) => { if (this.timer && !seen[0].isIntersecting) this.play(false); }).observe(root);
    if (!this.slide) addEventListener("hashchange", () => this.readAddress());
  }
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || this.slide) return;
    const onButton = event.target.closest("button, select");
    if (event.target.closest("select") && event.key !== "Escape") return;
    const acts = {
      ArrowRight: () => event.shiftKey ? this.jump(1) : this.step(1), ArrowLeft: () => event.shiftKey ? this.jump(-1) : this.step(-1),
      n: () => this.jump(1), p: () => this.jump(-1),
      Home: () => this.go(this.now.stops[0]), End: () => this.go(this.now.stops[this.now.stops.length - 1]),
      ArrowUp: () => this.otherTask(-1), ArrowDown: () => this.otherTask(1), "[": () => this.outer(-1), "]": () => this.outer(1),
      t: () => this.trueTime(), x: () => this.swap(), "?": () => this.help(), Escape: () => document.activeElement.blur(),
      " ": onButton ? null : () => this.play(),
    };
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    if (event.key !== " ") this.play(false);
    act();
    event.preventDefault();
    event.stopPropagation();
  }
  writeAddress() {
    if (this.slide) return;
    const place = this.moment ? this.moment.index + 1 : "c" + this.call;
    try { history.replaceState(null, "", `#${this.name}/${place}`); } catch { /* more often than a browser allows: a key is held */ }
  }
  readAddress() {
    let words = location.hash.slice(1);
    try { words = decodeURIComponent(words); } catch { /* a % that encodes nothing: an address of somebody else */ }
    const [name, place] = words.split("/");
    if (name !== this.name || !place) return;
    const stop = place[0] === "c" ? this.now.stops.find((one) => one.call === Number(place.slice(1))) : this.now.moments[Number(place) - 1];
    if (stop) { this.go(stop, { silent: true }); this.root.scrollIntoView({ block: "nearest" }); }
  }
}

// On a slide the fragments are the moments: what moves the deck moves the player. On paper stands the best.
function follow(player) {
  const slide = player.root.closest("section");
  const { best, moments } = player.now;
  const shown = slide.querySelectorAll(".moment.fragment.visible").length;
  player.go(moments[document.documentElement.dataset.printing ? best : Math.min(shown, moments.length - 1)]);
}

const players = [...document.querySelectorAll(".player")].map((root) => new Player(root));
const onSlides = players.filter((player) => player.slide);
if (onSlides.length) {
  for (const event of ["ready", "slidechanged", "fragmentshown", "fragmenthidden"]) Reveal.on(event, () => setTimeout(() => onSlides.forEach(follow)));
}
window.questPlayers = players;
})();
