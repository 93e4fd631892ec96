// The timeline: a lane a process, a bar an operation, faults as bands, and the evidence over all.

const lanes = document.getElementById("lanes");
const frame = document.getElementById("frame");
const tip = document.getElementById("tip");
const AXIS = 20, FAULT_ROW = 15, FAULT_ROWS_MAX = 8;

const faultRows = (() => {
  const free = [];
  return data.faults.map((fault) => {
    let row = free.findIndex((since) => since <= fault.begin);
    if (row < 0) row = Math.min(free.length, FAULT_ROWS_MAX - 1);
    free[row] = fault.end ?? END;
    return row;
  });
})();
const inLane = data.lanes.map(() => []);
bars.call.forEach((_, place) => inLane[bars.lane[place]].push(place));

const shape = { left: 0, top: 0, lane: 18, width: 0 };
function measure() {
  const width = lanes.clientWidth;
  const room = Math.min(46 * 16, innerHeight * 0.75);
  const faults = faultRows.length ? (Math.max(...faultRows) + 1) * FAULT_ROW + 4 : 0;
  shape.left = width < 600 ? 46 : 84;
  shape.top = AXIS + faults;
  const fitting = Math.floor((room - shape.top) / Math.max(1, data.lanes.length));
  shape.lane = Math.min(26, Math.max(data.lanes.length > 150 ? 7 : 14, fitting));
  shape.width = width;
  return shape.top + shape.lane * data.lanes.length + 4;
}
const xOf = (us) => shape.left + ((us - view.from) / (view.to - view.from)) * (shape.width - shape.left);
const timeAt = (x) => view.from + ((x - shape.left) / (shape.width - shape.left)) * (view.to - view.from);
const yOf = (lane) => shape.top + lane * shape.lane;

function drawLanes() {
  const tall = measure();
  const { pen, width } = surface(lanes, tall);
  drawGround(pen, width, tall);
  pen.save();
  pen.beginPath();
  pen.rect(shape.left, 0, width - shape.left, tall);
  pen.clip();
  for (let place = 0; place < bars.call.length; place++) {
    if (bars.call[place] > view.to || endOf(place) < view.from) continue;
    drawBar(pen, place);
  }
  drawWitness(pen, tall);
  if (view.operation !== NONE) outline(pen, view.operation, colours.focus, 2);
  pen.restore();
  drawNames(pen, tall);
}

function drawGround(pen, width, tall) {
  pen.fillStyle = colours.card;
  pen.fillRect(0, 0, width, tall);
  for (let lane = 0; lane < data.lanes.length; lane += 2) {
    pen.fillStyle = colours.lane;
    pen.fillRect(shape.left, yOf(lane), width - shape.left, shape.lane);
  }
  const { found, step } = steps(view.from, view.to, (width - shape.left) / 95);
  pen.textBaseline = "middle";
  for (const at of found) {
    const x = Math.round(xOf(at)) + 0.5;
    if (x < shape.left) continue;
    pen.fillStyle = colours.grid;
    pen.fillRect(x - 0.5, AXIS, 1, tall);
    pen.fillStyle = colours.soft;
    const label = moment(at, step);
    const wide = pen.measureText(label).width;
    if (x + wide / 2 < width) pen.fillText(label, Math.max(shape.left, x - wide / 2), AXIS / 2);
  }
  pen.save();
  pen.beginPath();
  pen.rect(shape.left, AXIS, width - shape.left, tall);
  pen.clip();
  drawBands(pen, xOf, shape.top, tall - shape.top);
  drawFaults(pen, width);
  drawMarks(pen, tall);
  pen.restore();
}

function drawFaults(pen, width) {
  data.faults.forEach((fault, place) => {
    const left = xOf(fault.begin), right = Math.max(left + 2, xOf(fault.end ?? END));
    if (right < shape.left || left > width) return;
    const y = AXIS + faultRows[place] * FAULT_ROW;
    const shown = Math.max(left, shape.left);
    if (fault.bit === false) {
      pen.strokeStyle = colours.fault;
      pen.setLineDash([3, 2]);
      pen.strokeRect(left + 0.5, y + 1.5, right - left - 1, FAULT_ROW - 3);
      pen.setLineDash([]);
    } else {
      pen.fillStyle = colours.fault;
      pen.fillRect(left, y + 1, right - left, FAULT_ROW - 2);
    }
    const label = fault.nodes ? `${fault.kind} ${fault.nodes}` : fault.kind;
    fitText(pen, label, shown + 3, y + FAULT_ROW / 2, right - shown - 5, fault.bit === false ? colours.text : colours.card);
  });
}

function drawMarks(pen, tall) {
  let free = shape.left;
  for (const [at, text] of data.marks) {
    const x = xOf(at);
    pen.strokeStyle = colours.soft;
    pen.setLineDash([1, 3]);
    pen.beginPath();
    pen.moveTo(x, AXIS);
    pen.lineTo(x, tall);
    pen.stroke();
    pen.setLineDash([]);
    if (x < free) continue;
    const wide = pen.measureText(text).width;
    if (wide > 160) continue;
    pen.save();
    pen.globalAlpha = 0.85;
    pen.fillStyle = colours.card;
    pen.fillRect(x + 2, tall - 14, wide + 4, 12);
    pen.restore();
    pen.fillStyle = colours.soft;
    pen.fillText(text, x + 4, tall - 8);
    free = x + wide + 8;
  }
}

function fitText(pen, text, x, y, room, colour) {
  if (room < 14) return;
  let shown = text;
  if (pen.measureText(shown).width > room) {
    const share = room / pen.measureText(shown).width;
    shown = `${shown.slice(0, Math.max(1, Math.floor(share * shown.length) - 1))}\u2026`;
  }
  if (pen.measureText(shown).width > room) return;
  pen.fillStyle = colour;
  pen.fillText(shown, x, y);
}

function box(place) {
  const left = xOf(bars.call[place]), right = xOf(endOf(place));
  const inset = shape.lane > 12 ? 2 : 1;
  return [left, yOf(bars.lane[place]) + inset, Math.max(1.5, right - left), shape.lane - 2 * inset];
}

// ok fills its lane; failed half of it, with a cross; unknown is open to the right, and fades.
function drawBar(pen, place) {
  const [left, top, width, height] = box(place);
  const outcome = bars.outcome[place];
  pen.fillStyle = colours.of[outcome];
  if (outcome === OK) {
    pen.fillRect(left, top, width, height);
  } else if (outcome === FAIL) {
    pen.fillRect(left, top + height / 2, width, height / 2);
    if (width > 3) cross(pen, left + width - 3, top + height / 4, colours.fail);
  } else {
    pen.globalAlpha = 0.35;
    pen.fillRect(left, top, width, height);
    pen.globalAlpha = 1;
    pen.fillRect(left, top, Math.min(2, width), height);
    pen.fillRect(left, top, width, 1.5);
    pen.fillRect(left, top + height - 1.5, width, 1.5);
    if (width > 10) fitText(pen, "?", left + width - 8, top + height / 2, 20, colours.text);
  }
  if (width > 60 && height > (outcome === FAIL ? 18 : 9)) {
    const name = `${data.functions[bars.function[place]]} ${bars.text[place]}`;
    const from = Math.max(left, shape.left);
    const room = Math.min(left + width, shape.width) - from - 14;
    const middle = top + height * (outcome === FAIL ? 0.25 : 0.5);
    fitText(pen, name, from + 4, middle, room, outcome === OK ? colours.card : colours.text);
  }
}

function cross(pen, x, y, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x - 2.5, y - 2.5);
  pen.lineTo(x + 2.5, y + 2.5);
  pen.moveTo(x - 2.5, y + 2.5);
  pen.lineTo(x + 2.5, y - 2.5);
  pen.stroke();
  pen.lineWidth = 1;
}

function outline(pen, place, colour, width) {
  const [left, top, wide, height] = box(place);
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.strokeRect(left - 2, top - 1, wide + 4, height + 2);
  pen.lineWidth = 1;
}

function drawWitness(pen, tall) {
  const finding = data.findings[view.finding];
  if (!finding) return;
  for (const place of finding.operations) outline(pen, place, colours.text, 2);
  for (const [first, second, kind] of finding.edges) drawEdge(pen, first, second, kind, finding.rule, tall);
  finding.operations.forEach((place, number) => {
    const [left, top, , height] = box(place);
    const x = left - 18 < shape.left && left >= shape.left - 8 ? left + 10 : left - 10;
    pen.fillStyle = colours.text;
    pen.beginPath();
    pen.arc(x, top + height / 2, 7.5, 0, 7);
    pen.fill();
    pen.fillStyle = colours.card;
    pen.textAlign = "center";
    pen.fillText(`${number + 1}`, x, top + height / 2 + 0.5);
    pen.textAlign = "left";
  });
}

// From the end of one to the begin of the other; what is broken runs back, dashed.
function drawEdge(pen, first, second, kind, rule, tall) {
  const one = box(first), other = box(second);
  const isBefore = kind === "before";
  const lowest = Math.max(one[1] + one[3], other[1] + other[3]);
  const bend = Math.max(24, Math.min(70, Math.abs(one[0] - other[0]) / 6));
  const isUnder = lowest + bend / 2 + 8 < tall; // there is room below
  const edge = (bar) => [bar[0] + bar[2] / 2, isUnder ? bar[1] + bar[3] + 2 : bar[1] - 2];
  const from = isBefore ? [one[0] + one[2] + 3, one[1] + one[3] / 2] : edge(one);
  const to = isBefore ? [other[0] - 19, other[1] + other[3] / 2] : edge(other);
  const middle = [(from[0] + to[0]) / 2, isUnder ? Math.max(from[1], to[1]) + bend : Math.min(from[1], to[1]) - bend];
  if (isBefore) middle[1] = (from[1] + to[1]) / 2;
  pen.beginPath();
  pen.moveTo(...from);
  pen.quadraticCurveTo(...middle, ...to);
  pen.strokeStyle = colours.card; // so that it stands out from the bars it crosses
  pen.lineWidth = 6;
  pen.stroke();
  pen.strokeStyle = pen.fillStyle = isBefore ? colours.text : colours.bad;
  pen.lineWidth = 2;
  pen.setLineDash(isBefore ? [] : [6, 4]);
  pen.stroke();
  pen.setLineDash([]);
  if (kind !== "against") head(pen, middle, to);
  pen.lineWidth = 1;
  if (!isBefore) drawRule(pen, (from[0] + 2 * middle[0] + to[0]) / 4, (from[1] + 2 * middle[1] + to[1]) / 4, kind === "broken" ? `${rule}: needs this order` : rule);
}

function drawRule(pen, x, y, text) {
  const wide = pen.measureText(text).width;
  const left = Math.min(Math.max(x - wide / 2, shape.left + 4), shape.width - wide - 6);
  pen.fillStyle = colours.card;
  pen.fillRect(left - 3, y - 8, wide + 6, 16);
  pen.fillStyle = colours.bad;
  pen.fillText(text, left, y);
}

function head(pen, from, to) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  pen.beginPath();
  pen.moveTo(...to);
  for (const side of [-0.45, 0.45])
    pen.lineTo(to[0] - 9 * Math.cos(angle + side), to[1] - 9 * Math.sin(angle + side));
  pen.fill();
}

function drawNames(pen, tall) {
  pen.fillStyle = colours.card;
  pen.fillRect(0, 0, shape.left, tall);
  pen.fillStyle = colours.line;
  pen.fillRect(shape.left - 1, 0, 1, tall);
  if (data.faults.length) fitText(pen, "faults", 4, AXIS + FAULT_ROW / 2, shape.left - 8, colours.soft);
  if (shape.lane < 10) return;
  data.lanes.forEach((name, lane) => {
    const fits = pen.measureText(name).width <= shape.left - 8;
    const shown = fits ? name : `${name.split(/[ ,]/)[0]}\u2026`; // its first process
    fitText(pen, shown, 4, yOf(lane) + shape.lane / 2, shape.left - 8, colours.soft);
  });
}

// --- pointing at operations --------------------------------------------------------------------

function operationAt(x, y) {
  const lane = Math.floor((y - shape.top) / shape.lane);
  if (x < shape.left || !(lane in inLane)) return NONE;
  const near = nearest(inLane[lane], timeAt(x));
  const [left, , width] = near === NONE ? [0, 0, 0] : box(near);
  return near !== NONE && x >= left - 4 && x <= left + width + 4 ? near : NONE;
}

function nearest(places, at) {
  let low = 0, high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars.call[places[middle]] <= at) low = middle + 1;
    else high = middle;
  }
  const distance = (place) => Math.max(bars.call[place] - at, at - endOf(place), 0);
  return [places[low - 1], places[low]].filter((each) => each !== undefined)
    .reduce((best, each) => (best === NONE || distance(each) < distance(best) ? each : best), NONE);
}

function describe(place) {
  const ended = bars.ret[place] === NONE ? "never ended" : `${moment(bars.ret[place], 1)}, after ${span(bars.ret[place] - bars.call[place])}`;
  return `${data.functions[bars.function[place]]} by process ${bars.process[place]}: ${OUTCOMES[bars.outcome[place]]}. ` +
    `${moment(bars.call[place], 1)} to ${ended}. Operation ${bars.index[place]}.`;
}

function point(place, isSaid = false) {
  if (view.operation === place && !isSaid && place !== NONE) return;
  view.operation = place;
  tip.hidden = place === NONE;
  if (place !== NONE) {
    const whole = bars.whole[place] ?? [`${data.functions[bars.function[place]]} ${bars.text[place]}`];
    tip.replaceChildren(element("b", { textContent: describe(place) }), element("pre", { textContent: whole.join("\n") }));
    placeTip(box(place));
    if (isSaid) document.getElementById("live").textContent = `${describe(place)} ${whole.join(" ")}`;
  }
  view.changed();
}

function pointAt(x, y, isSaid = false) {
  const fault = faultAt(x, y);
  point(fault ? NONE : operationAt(x, y), isSaid);
  if (!fault) return;
  const told = `${fault.kind} ${fault.nodes}: ${moment(fault.begin, 1000)} to ${fault.end === null ? "the end" : moment(fault.end, 1000)}`;
  tip.hidden = false;
  tip.replaceChildren(element("b", { textContent: told }), element("pre", { textContent: `${fault.role} ${fault.evidence}`.trim() }));
  placeTip([Math.max(x - 20, shape.left), y, 1, FAULT_ROW / 2]);
}

function faultAt(x, y) {
  const row = Math.floor((y - AXIS) / FAULT_ROW);
  if (x < shape.left || y < AXIS || y >= shape.top) return undefined;
  return data.faults.find((fault, place) => faultRows[place] === row && x >= xOf(fault.begin) - 2 && x <= xOf(fault.end ?? END) + 2);
}

function placeTip([left, top, , height]) {
  const below = top + height + 8 - frame.scrollTop, above = top - 8 - frame.scrollTop;
  tip.style.left = "0px";
  const wide = tip.offsetWidth, tall = tip.offsetHeight;
  tip.style.left = `${Math.max(2, Math.min(Math.max(left, shape.left), shape.width - wide - 4))}px`;
  const room = innerHeight - frame.getBoundingClientRect().top;
  tip.style.top = `${below + tall > room && above > tall ? above - tall : below}px`;
}

function step(by) {
  const current = view.operation;
  if (current === NONE) return point(nearest(inLane[0] ?? [], view.from), true);
  const own = inLane[bars.lane[current]];
  const next = own[own.indexOf(current) + by];
  if (next !== undefined) reach(next);
}

function change(by) {
  const current = view.operation;
  if (current === NONE) return step(0);
  for (let lane = bars.lane[current] + by; lane in inLane; lane += by) {
    if (inLane[lane].length) return reach(nearest(inLane[lane], bars.call[current]));
  }
}

function reach(place) {
  if (bars.call[place] < view.from || bars.call[place] > view.to) {
    const width = view.to - view.from;
    view.show(bars.call[place] - width / 2, bars.call[place] + width / 2);
  }
  const y = yOf(bars.lane[place]);
  if (y < frame.scrollTop || y + shape.lane > frame.scrollTop + frame.clientHeight) frame.scrollTop = y - frame.clientHeight / 2;
  point(place, true);
}

const keys = {
  ArrowLeft: (event) => (event.shiftKey ? view.move(-0.25) : step(-1)),
  ArrowRight: (event) => (event.shiftKey ? view.move(0.25) : step(1)),
  ArrowUp: () => change(-1),
  ArrowDown: () => change(1),
  "+": () => view.zoom(0.5),
  "=": () => view.zoom(0.5),
  "-": () => view.zoom(2),
  0: () => view.show(0, END),
  Escape: () => point(NONE),
};
lanes.addEventListener("keydown", (event) => {
  const act = keys[event.key];
  if (!act || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  act(event);
});
lanes.addEventListener("pointermove", (event) => {
  if (event.pointerType === "mouse" && !event.buttons) pointAt(event.offsetX, event.offsetY);
});
lanes.addEventListener("pointerleave", (event) => {
  if (event.pointerType === "mouse") point(NONE);
});
lanes.addEventListener("blur", () => point(NONE));
frame.addEventListener("scroll", () => {
  if (view.operation !== NONE) placeTip(box(view.operation));
});
lanes.addEventListener("dblclick", (event) => view.zoom(0.4, timeAt(event.offsetX)));
lanes.addEventListener("wheel", (event) => {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    view.zoom(Math.exp(Math.max(-50, Math.min(50, event.deltaY)) / 100), timeAt(event.offsetX));
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    view.move(event.deltaX / (shape.width - shape.left));
  }
}, { passive: false });
dragged(lanes, {
  drag: (by) => view.move(-by / (shape.width - shape.left)),
  tap: (x, y) => pointAt(x, y, true),
  pinch: (factor, x) => view.zoom(factor, timeAt(x)),
});
view.listeners.push(drawLanes);
