"use strict";
// What all drawings share: the data, the part of the run that is in view, colours, and formats.

const data = JSON.parse(document.getElementById("data").textContent);
const OK = 0, INFO = 1, FAIL = 2, NONE = -1;
const OUTCOMES = ["ok", "unknown", "failed"];
const END = Math.max(data.end, 1);
const bars = data.operations;

const view = {
  from: 0,
  to: END,
  finding: data.findings.length ? 0 : NONE,
  operation: NONE, // that is pointed at, or was reached with a key
  listeners: [],
  show(from, to) {
    const least = Math.min(END, 20); // microseconds: nothing is to be seen below
    const width = Math.min(Math.max(to - from, least), END * 1.02);
    this.from = Math.min(Math.max(from, -0.01 * END), 1.01 * END - width);
    this.to = this.from + width;
    this.changed();
  },
  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  },
  move(share) {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  },
  around(places) {
    if (!places.length) return;
    const from = Math.min(...places.map((place) => bars.call[place]));
    const to = Math.max(...places.map((place) => endOf(place)));
    const room = Math.max(0.2 * (to - from), END / 20000, 200);
    this.show(from - room, to + room);
  },
  changed() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      for (const draw of this.listeners) draw();
    });
  },
};

function endOf(place) {
  return bars.ret[place] === NONE ? END : bars.ret[place];
}

let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["card", "text", "soft", "line", "grid", "ok", "info", "fail", "bad", "fault", "band", "lane", "veil", "focus", "page"])
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  colours.of = [colours.ok, colours.info, colours.fail];
}
readColours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  view.changed();
});
addEventListener("resize", () => view.changed());

// A canvas as large as its box, at the resolution of the screen as far as memory allows.
function surface(canvas, height) {
  const width = canvas.clientWidth;
  if (height !== undefined) canvas.style.height = `${height}px`;
  const tall = height ?? canvas.clientHeight;
  const scale = Math.min(devicePixelRatio || 1, Math.sqrt(1.2e7 / Math.max(1, width * tall)));
  const pixels = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(tall * scale))];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, tall);
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  return { pen, width, height: tall };
}

function steps(from, to, wanted) {
  const rough = (to - from) / Math.max(wanted, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return { found, step };
}

function moment(us, step = 1000) {
  if (!data.is_time) return `line ${Math.round(us / 1000)}`;
  const digits = Math.min(6, Math.max(0, -Math.floor(Math.log10(step / 1e6))));
  return `${(us / 1e6).toFixed(digits)} s`;
}

function span(us) {
  if (us === null || us === undefined) return "\u2013";
  if (!data.is_time) return `${Math.round(us / 1000)} lines`;
  if (us >= 1e6) return `${Number((us / 1e6).toPrecision(us >= 1e8 ? 4 : 3))} s`;
  if (us >= 1e3) return `${Number((us / 1e3).toPrecision(3))} ms`;
  return `${us} \u00b5s`;
}

function count(number) {
  return number.toLocaleString("en");
}

function element(name, settings = {}, ...children) {
  const made = Object.assign(document.createElement(name), settings);
  made.append(...children.filter((each) => each !== null));
  return made;
}

// Bands of faults behind whatever is drawn over them; hatched where they did not bite.
function drawBands(pen, at, top, height) {
  for (const fault of data.faults) {
    const left = at(fault.begin), right = at(fault.end ?? END);
    pen.fillStyle = colours.band;
    pen.fillRect(left, top, Math.max(1.5, right - left), height);
  }
}

function dragged(canvas, { start, drag, tap, pinch }) {
  const touching = new Map();
  let moved = false, gap = 0;
  const where = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    touching.set(event.pointerId, where(event));
    moved = false;
    gap = 0;
    start?.(...where(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = touching.get(event.pointerId);
    if (!before) return;
    const now = where(event);
    touching.set(event.pointerId, now);
    if (touching.size === 2) {
      const [one, other] = [...touching.values()];
      const distance = Math.max(12, Math.abs(one[0] - other[0]));
      if (gap && pinch) pinch(gap / distance, (one[0] + other[0]) / 2);
      gap = distance;
      moved = true;
    } else if (moved || Math.abs(now[0] - before[0]) > 1) {
      moved = true;
      drag?.(now[0] - before[0], ...now);
    }
  });
  const end = (event) => {
    if (touching.delete(event.pointerId) && !moved && event.type === "pointerup") tap?.(...where(event));
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
}
