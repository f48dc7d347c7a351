// Demos: a slide with data-demo plays one. With ?stage=PORT.TOKEN (make present) it runs, and its
// points come as they are measured; else the recording in the deck is played, and the slide says so.
// Where a demo fails, or nothing comes for ten seconds, the recording goes on from that moment.
// Leaving the slide ends it.
"use strict";

const Demos = (() => {
  const given = new URLSearchParams(location.search);
  const paper = given.get("view") === "print" || given.has("print-pdf");
  // The windows of the speaker view are the same page: the demo runs in the room alone.
  // The address may be somebody else's link: what is no port would name another machine ("x@3221225985").
  const [, port, token] = (!given.has("receiver") && /^(\d{1,5})\.([\w-]+)$/.exec(given.get("stage"))) || [];
  const PATIENCE = 10000;
  // Of theme.css, for the deck may be dark.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = (count) => [1, 2, 3, 4].slice(0, count).map((place) => colour(`--series-${place}`));
  const SIZE = 24;
  const SETTLING = 1; // seconds after a mark: what an arrival itself costs is not the question

  function number(y) {
    if (y === 0) return "0";
    return y >= 100 ? y.toFixed(0) : String(Number(y.toPrecision(2)));
  }

  class Demo {
    constructor(slide) {
      this.slide = slide;
      this.plot = slide.querySelector(".plot");
      this.said = slide.querySelector(".said");
      const lines = slide.querySelector("script.recording").textContent.trim().split("\n");
      [this.recorded, ...this.events] = lines.map((line) => JSON.parse(line));
      this.timers = [];
      this.rows = [];
    }

    start() {
      this.stop();
      this.rows = [];
      if (!(port < 65536)) return this.replay("Recorded"); // none was given, too
      const query = new URLSearchParams({ demo: this.slide.dataset.demo, token });
      this.source = new EventSource(`http://127.0.0.1:${port}/demo?${query}`);
      this.wait();
      this.source.onmessage = (message) => this.take(JSON.parse(message.data));
      // It would ask again by itself, and the demo begin anew.
      this.source.onerror = () => this.replay("The demo cannot be reached. Recorded");
    }

    // Whatever comes, comes within ten seconds of the last.
    wait() {
      clearTimeout(this.watch);
      this.watch = setTimeout(() => this.replay("The demo does not answer. Recorded"), PATIENCE);
    }

    take(event) {
      if (event.failed) return this.replay(`${event.failed}. Recorded`);
      if (event.end) return this.stop();
      if (event.line) this.wait();
      this.show(event);
    }

    stop() {
      if (this.source) this.source.close();
      this.source = null;
      clearTimeout(this.watch);
      this.timers.splice(0).forEach(clearTimeout);
    }

    // From the beginning, or from where the demo broke off.
    replay(why) {
      this.stop();
      const { date, system, cores } = this.recorded;
      const from = this.rows.length ? (performance.now() - this.began) / 1000 : 0;
      const rest = from ? this.events.filter((event) => event.at > from) : this.events;
      const run = `${date}, ${system}, ${cores} cores`;
      this.label = this.events.length ? `${why}${from ? " from here on:" : ""} ${run}` : `${why}: no recording`;
      for (const event of rest) {
        this.timers.push(setTimeout(() => event.end || this.show(event), (event.at - from) * 1000));
      }
      this.tell();
    }

    all() {
      for (const event of this.events) if (!event.end) this.show(event);
      this.label = `Recorded ${this.recorded.date}`;
      this.tell();
    }

    show(event) {
      if (event.begin) return this.begin(event);
      if (event.note) {
        if (event.x !== undefined) this.marks.push(event.x);
        this.note = event.note;
      } else {
        const row = [event.x, ...this.lines.map(() => null)];
        row[1 + this.lines.indexOf(event.line)] = event.y === null ? NaN : event.y;
        this.rows.push(row);
        this.rows.sort((a, b) => a[0] - b[0]);
        this.last[event.line] = event.y;
      }
      this.draw();
    }

    begin(event) {
      if (this.source) this.label = "";
      this.label = this.label || "";
      this.began = performance.now();
      this.lines = [...new Set(event.lines)];
      [this.rows, this.marks, this.last, this.note, this.about] = [[], [], {}, "", event];
      // Those that stand far enough apart on a linear axis.
      const apart = (v, i, all) => i === all.length - 1 || (v >= all.at(-1) / 12 && all.at(-1) - v >= all.at(-1) / 12);
      this.ticks = () => [0, ...event.ticks.filter(apart)].map((v) => ({ v, label: String(v) }));
      if (this.graph) this.graph.destroy();
      this.graph = null;
      this.draw();
    }

    // All points lie inside, but for those of an arrival, which may lie far above: they end at the top.
    // The same rule as in stage/seen.py.
    top() {
      const arriving = (x) => this.marks.some((mark) => mark <= x && x <= mark + SETTLING);
      const inside = this.rows.filter((row) => !arriving(row[0])).flatMap((row) => row.slice(1));
      return Math.max(this.about.top, ...inside.map((y) => y || 0));
    }

    draw() {
      const words = this.lines.flatMap((line, index) => {
        const y = this.last[line], name = Object.assign(document.createElement("b"), { textContent: line });
        name.style.color = `var(--series-${index + 1})`;
        return [name, ` ${y === undefined ? "" : y === null ? "no answer" : number(y)} \u00a0 `];
      });
      this.said.replaceChildren(...words, Object.assign(document.createElement("i"), { textContent: this.note }));
      this.tell();
      this.slide.querySelector(".demo .y").textContent = this.about.y;
      if (typeof Dygraph === "undefined" || !this.rows.length) return;
      const sweep = this.about.x === "silent";
      const top = this.top();
      const file = this.rows.map(([x, ...ys]) => [x, ...ys.map((y) => (y > top ? top : y))]);
      const valueRange = [0, this.about.top || !sweep ? top * 1.02 : null];
      if (this.graph) return this.graph.updateOptions({ file, valueRange });
      this.graph = new Dygraph(this.plot, file, {
        labels: ["x", ...this.lines],
        colors: colours(this.lines.length),
        strokeWidth: 5,
        drawPoints: sweep,
        pointSize: 9,
        connectSeparatedPoints: true,
        dateWindow: [0, sweep ? this.about.ticks.at(-1) * 1.04 : this.about.until],
        valueRange,
        xlabel: sweep ? "silent clients" : "seconds",
        xLabelHeight: 34,
        axisLabelFontSize: SIZE,
        axisLabelWidth: 84,
        axes: {
          x: { drawGrid: false, axisLabelFormatter: number, ...(sweep && { ticker: this.ticks }) },
          y: { axisLabelFormatter: number },
        },
        xAxisHeight: 44,
        gridLineColor: colour("--line"),
        axisLineColor: colour("--text"),
        legend: "never",
        interactionModel: {},
        underlayCallback: (context, area, graph) => {
          context.strokeStyle = colour("--quiet");
          context.setLineDash([8, 8]);
          for (const x of this.marks) {
            const at = graph.toDomXCoord(x);
            context.beginPath();
            context.moveTo(at, area.y);
            context.lineTo(at, area.y + area.h);
            context.stroke();
          }
          context.setLineDash([]);
        },
      });
    }

    // The deck has become dark, or light.
    recolour() {
      if (this.graph) this.graph.destroy();
      this.graph = null;
      if (this.about) this.draw();
    }

    tell() {
      this.slide.querySelector(".recorded").textContent = this.label || "";
    }
  }

  const known = new Map();
  function of(slide) {
    if (!slide || !slide.dataset.demo || !slide.querySelector(".plot")) return null;
    if (!known.has(slide)) known.set(slide, new Demo(slide));
    return known.get(slide);
  }

  // Once for each slide that is entered: reveal.js says "ready" and "slidechanged" of the first, and of
  // two requests the one that was given up could come last. Who looks at all slides at once (Esc) enters none
  // until one is chosen.
  let playing = null;
  function enter(slide) {
    const demo = of(slide);
    if (paper || demo === playing) return;
    if (playing) playing.stop();
    playing = demo;
    if (demo) demo.start();
  }
  const entered = () => enter(Reveal.isOverview() ? null : Reveal.getCurrentSlide());
  for (const event of ["ready", "slidechanged", "overviewhidden"]) Reveal.on(event, entered);
  // On paper: what the recording ends with.
  Reveal.on("pdf-ready", () => {
    for (const slide of document.querySelectorAll("section[data-demo]")) of(slide).all();
  });
  return known;
})();
