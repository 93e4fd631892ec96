// The overview with its window, and the plots over the whole run: all share one axis of time.

const series = data.series;
const PLOT = { left: 58, right: 10, top: 8, bottom: 20 };
const buckets = series.ended.ok.length;
const perSecond = (number) => number / (series.width / 1e6);

// --- the overview: how much ended when, faults, evidence, and the part that the timeline shows ---

const overview = document.getElementById("overview");
// Under each other, the two stand at the same times when the whole run is in view.
const overviewAt = (us) => shape.left + (us / END) * (overview.clientWidth - shape.left);
const overviewTime = (x) => ((x - shape.left) / (overview.clientWidth - shape.left)) * END;

function drawOverview() {
  const { pen, width, height } = surface(overview);
  pen.fillStyle = colours.lane;
  pen.fillRect(shape.left, 0, width - shape.left, height);
  drawBands(pen, overviewAt, 0, height);
  const totals = series.ended.ok.map((ok, at) => ok + series.ended.info[at] + series.ended.fail[at]);
  const most = Math.max(1, ...totals);
  const wide = Math.max(1, overviewAt(series.width) - shape.left);
  totals.forEach((_, at) => {
    let top = height;
    for (const [name, colour] of [["ok", colours.ok], ["fail", colours.fail], ["info", colours.info]]) {
      const tall = (series.ended[name][at] / most) * (height - 12);
      pen.fillStyle = colour;
      pen.fillRect(overviewAt(at * series.width), top - tall, wide, tall);
      top -= tall;
    }
  });
  data.findings.forEach((finding, number) => {
    pen.fillStyle = colours.bad;
    for (const place of finding.operations) {
      const x = overviewAt(bars.call[place]);
      pen.beginPath();
      pen.moveTo(x - 5, 0);
      pen.lineTo(x + 5, 0);
      pen.lineTo(x, number === view.finding ? 11 : 7);
      pen.fill();
    }
  });
  const left = overviewAt(Math.max(0, view.from)), right = Math.max(left + 3, overviewAt(Math.min(END, view.to)));
  pen.fillStyle = colours.veil;
  pen.fillRect(shape.left, 0, left - shape.left, height);
  pen.fillRect(right, 0, width - right, height);
  pen.strokeStyle = colours.text;
  pen.strokeRect(left + 0.5, 0.5, Math.max(2, right - left - 1), height - 1);
  overview.setAttribute("aria-valuemin", "0");
  overview.setAttribute("aria-valuemax", `${END}`);
  overview.setAttribute("aria-valuenow", `${Math.round((view.from + view.to) / 2)}`);
  overview.setAttribute("aria-valuetext", `${moment(view.from)} to ${moment(view.to)}`);
}

function centre(us) {
  const half = (view.to - view.from) / 2;
  view.show(us - half, us + half);
}

dragged(overview, {
  drag: (by, x) => centre(overviewTime(x)),
  tap: (x) => {
    if (view.to - view.from > END / 2) view.show(0, END / 20);
    centre(overviewTime(x));
  },
});
overview.addEventListener("keydown", (event) => {
  const act = { ArrowLeft: () => view.move(-0.25), ArrowRight: () => view.move(0.25), "+": () => view.zoom(0.5), "-": () => view.zoom(2) }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
view.listeners.push(drawOverview);

// --- plots -----------------------------------------------------------------------------------------

// `lines`: each {name, colour, dash, times, values}; `read(us)`: what is said of a moment.
function plot(figure, { lines, points = () => [], format, isLog = false, read, title }) {
  const canvas = element("canvas", { tabIndex: 0 });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${title}. Left and right arrows read values.`);
  const legend = element("ul", { className: "legend" });
  const caption = element("figcaption");
  caption.setAttribute("aria-live", "polite");
  figure.replaceChildren(canvas, caption, legend);
  let cursor = NONE;

  function draw() {
    const { pen, width, height } = surface(canvas);
    const plotted = lines(), dots = points();
    const values = [...plotted.flatMap((line) => line.values), ...dots.map((dot) => dot.value)].filter((each) => each > 0);
    const axis = axisOf(values, isLog, height);
    const x = (us) => PLOT.left + (us / END) * (width - PLOT.left - PLOT.right);
    drawBands(pen, x, PLOT.top, height - PLOT.top - PLOT.bottom);
    drawAxes(pen, width, height, axis, x, format);
    pen.globalAlpha = dots.length > 100 ? 0.45 : 1;
    for (const dot of dots) drawDot(pen, dot, x(dot.at), axis.y(dot.value));
    pen.globalAlpha = 1;
    for (const line of plotted) drawLine(pen, line, x, axis.y, height - PLOT.bottom);
    if (cursor !== NONE) {
      pen.fillStyle = colours.focus;
      pen.fillRect(x(cursor) - 0.5, PLOT.top, 1, height - PLOT.top - PLOT.bottom);
    }
    legend.replaceChildren(...plotted.map((line) => key(line.name, (ink) => drawSample(ink, line))), ...dotKeys(dots));
  }

  function look(us) {
    cursor = Math.min(Math.max(us, 0), END);
    caption.textContent = read(cursor);
    draw();
  }
  const timeOf = (event) => ((event.offsetX - PLOT.left) / (canvas.clientWidth - PLOT.left - PLOT.right)) * END;
  canvas.addEventListener("pointermove", (event) => look(timeOf(event)));
  canvas.addEventListener("pointerleave", () => {
    cursor = NONE;
    caption.textContent = "";
    draw();
  });
  canvas.addEventListener("click", (event) => centre(timeOf(event)));
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    look((cursor === NONE ? 0 : cursor) + by * Math.max(series.width, END / 200));
  });
  view.listeners.push(draw);
}

function axisOf(values, isLog, height) {
  const most = values.reduce((a, b) => Math.max(a, b), 1);
  const tall = height - PLOT.top - PLOT.bottom;
  if (!isLog) {
    const { found, step } = steps(0, most, 4);
    const top = Math.ceil(most / step) * step;
    return { ticks: [...found, top].filter((each, at, all) => all.indexOf(each) === at), y: (value) => PLOT.top + tall * (1 - value / top) };
  }
  const least = values.reduce((a, b) => Math.min(a, b), most);
  const low = Math.floor(Math.log10(least)), high = Math.max(low + 1, Math.ceil(Math.log10(most)));
  const ticks = Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at));
  return { ticks, y: (value) => PLOT.top + tall * (1 - (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) };
}

function drawAxes(pen, width, height, axis, x, format) {
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const tick of axis.ticks) {
    pen.fillStyle = colours.grid;
    pen.fillRect(PLOT.left, Math.round(axis.y(tick)), width - PLOT.left - PLOT.right, 1);
    pen.fillStyle = colours.soft;
    pen.fillText(format(tick), PLOT.left - 6, axis.y(tick));
  }
  pen.textAlign = "center";
  const { found, step } = steps(0, END, width / 80);
  for (const at of found) pen.fillText(moment(at, step), Math.min(x(at), width - 20), height - 8);
  pen.textAlign = "left";
}

function drawLine(pen, line, x, y, floor) {
  pen.strokeStyle = line.colour;
  pen.lineWidth = line.width ?? 1.6;
  pen.setLineDash(line.dash ?? []);
  pen.beginPath();
  let isDown = false;
  line.values.forEach((value, at) => {
    if (value === NONE) {
      isDown = false;
      return;
    }
    const to = [x(line.times[at]), Math.min(y(value), floor)];
    if (isDown) pen.lineTo(...to);
    else pen.moveTo(...to);
    if (!isDown && (line.values[at + 1] ?? NONE) === NONE) pen.rect(to[0] - 0.5, to[1] - 0.5, 1, 1);
    isDown = true;
  });
  pen.stroke();
  pen.setLineDash([]);
  pen.lineWidth = 1;
}

function drawDot(pen, dot, x, y) {
  if (dot.outcome === FAIL) return cross(pen, x, y, colours.fail);
  pen.strokeStyle = colours.info;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.arc(x, y, 3, 0, 7);
  pen.stroke();
  pen.lineWidth = 1;
}

function dotKeys(dots) {
  return [INFO, FAIL].filter((outcome) => dots.some((dot) => dot.outcome === outcome))
    .map((outcome) => key(OUTCOMES[outcome], (pen) => drawDot(pen, { outcome }, 13, 7)));
}

function drawSample(pen, line) {
  pen.strokeStyle = line.colour;
  pen.lineWidth = 2;
  pen.setLineDash(line.dash ?? []);
  pen.beginPath();
  pen.moveTo(1, 7);
  pen.lineTo(25, 7);
  pen.stroke();
}

function key(name, draw) {
  const sample = element("canvas", { width: 52, height: 28 });
  const pen = sample.getContext("2d");
  pen.scale(2, 2);
  draw(pen);
  return element("li", {}, sample, name);
}

const bucketTimes = Array.from({ length: buckets }, (_, at) => Math.min((at + 0.5) * series.width, END));
const bucketAt = (us) => Math.min(Math.floor(us / series.width), buckets - 1);
const faultsAt = (us) => {
  const names = data.faults.filter((fault) => fault.begin <= us && us <= (fault.end ?? END)).map((fault) => fault.kind);
  return names.length ? `; faults: ${names.join(", ")}` : "";
};

const chooser = document.getElementById("function");
series.latencies.forEach((each, at) => chooser.append(new Option(`${each.function} (${count(each.count)})`, `${at}`)));
chooser.addEventListener("change", () => view.changed());
const latencies = () => series.latencies[Number(chooser.value || 0)];
const quantileName = (quantile) => (quantile === 1 ? "slowest" : `${quantile * 100} %`);
const DOTS_MAX = 500;
const DASHES = [[], [6, 3], [2, 2], [1, 4]];

plot(document.getElementById("latency"), {
  title: "Latency over time",
  isLog: true,
  format: (value) => span(value),
  lines: () => (latencies()?.quantiles ?? []).map((values, at) => ({
    name: quantileName(series.quantiles[at]),
    colour: at === 3 ? colours.soft : colours.ok,
    dash: DASHES[at],
    width: at === 0 ? 2 : 1.3,
    times: bucketTimes,
    values,
  })),
  points: () => bars.call.map((at, place) => ({ at, place, outcome: bars.outcome[place], value: Math.max(1, endOf(place) - at) }))
    .filter((dot) => dot.outcome !== OK && data.functions[bars.function[dot.place]] === latencies()?.function)
    .filter((_, at, all) => at % Math.ceil(all.length / DOTS_MAX) === 0),
  read: (us) => {
    const at = bucketAt(us);
    const told = (latencies()?.quantiles ?? []).map((values, which) => `${quantileName(series.quantiles[which])} ${values[at] === NONE ? "\u2013" : span(values[at])}`);
    return `${moment(bucketTimes[at], 1e4)}: ${told.join(", ")}${faultsAt(us)}`;
  },
});

plot(document.getElementById("throughput"), {
  title: "Operations that ended, per second",
  format: (value) => count(Math.round(value * 10) / 10),
  lines: () => [["ok", "ok", []], ["unknown", "info", [6, 3]], ["failed", "fail", [2, 2]]].map(([name, kind, dash]) => ({
    name,
    colour: colours[kind],
    dash,
    times: bucketTimes,
    values: series.ended[kind].map(perSecond),
  })),
  read: (us) => {
    const at = bucketAt(us);
    const told = ["ok", "info", "fail"].map((kind, which) => `${count(Math.round(perSecond(series.ended[kind][at]) * 10) / 10)} ${OUTCOMES[which]}`);
    return `${moment(bucketTimes[at], 1e4)}: ${told.join(", ")} a second${faultsAt(us)}`;
  },
});

if (data.unseen) {
  document.getElementById("unseen-section").hidden = false;
  plot(document.getElementById("unseen"), {
    title: "Records acknowledged and not yet polled by anybody",
    format: count,
    lines: () => [{ name: `records; ${count(data.unseen.counts.at(-1))} at the end`, colour: colours.ok, times: data.unseen.times, values: data.unseen.counts }],
    read: (us) => {
      const at = Math.max(0, data.unseen.times.findLastIndex((time) => time <= us));
      return `${moment(us, 1e4)}: ${count(data.unseen.counts[at])} records${faultsAt(us)}`;
    },
  });
}
