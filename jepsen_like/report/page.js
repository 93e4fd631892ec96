// Everything that is text: the verdict, findings, faults, objects; and the buttons.

const verdict = data.verdict;
const SIGNS = { valid: "\u2713", violated: "\u2717", undecided: "?" };

function tellVerdict() {
  const isVoid = verdict.void.length > 0 && verdict.outcome === "valid";
  const outcome = document.getElementById("outcome");
  outcome.className = isVoid ? "undecided" : verdict.outcome;
  outcome.textContent = isVoid ? "? void" : `${SIGNS[verdict.outcome]} ${verdict.outcome}`;
  document.getElementById("again").hidden = !data.said.again;
  const why = [verdict.reason && `Undecided: ${verdict.reason}`, ...verdict.void.map((each) => `Void: ${each}`)];
  if (data.header.is_cut) why.push("The last operation is torn: the run ended while it was written.");
  document.getElementById("why").textContent = why.filter(Boolean).join(". ");
  const ended = (kind) => series.ended[kind].reduce((sum, each) => sum + each, 0);
  const bitten = data.faults.filter((fault) => fault.bit).length;
  const facts = {
    ...Object.fromEntries(Object.entries(data.about).filter(([name]) => !["command", "planted"].includes(name))),
    operations: `${count(data.total)}: ${count(ended("ok"))} ok, ${count(ended("fail"))} failed, ${count(data.total - ended("ok") - ended("fail"))} unknown`,
    took: data.is_time ? span(data.end) : `${count(data.lines)} lines, without times`,
    faults: data.faults.length ? `${data.faults.length}, of which ${bitten} proven` : "none",
    objects: Object.entries(verdict.outcomes).map(([name, number]) => `${count(number)} ${name}`).join(", "),
    ...Object.fromEntries(Object.entries(verdict.counts).filter(([, number]) => number !== 0).map(([name, number]) => [name, typeof number === "number" ? count(number) : `${number}`])),
  };
  for (const [name, value] of Object.entries(facts)) {
    if (value) document.getElementById("facts").append(element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value })));
  }
}

function tellFindings() {
  const list = document.getElementById("findings");
  document.getElementById("what-broke").hidden = !data.findings.length;
  document.getElementById("to-witness").hidden = !data.findings.length;
  data.findings.forEach((finding, number) => {
    const button = element("button", { type: "button", className: "choose" },
      element("span", { className: "rule", textContent: finding.rule }), ` ${finding.object}: ${finding.detail}`);
    button.addEventListener("click", () => choose(number));
    const shown = element("ol", {}, ...finding.operations.map((place, at) => line(place, at, number)));
    list.append(element("li", {}, button, finding.says ? element("p", { className: "says", textContent: finding.says }) : null, shown));
  });
  const more = verdict.findings - data.findings.length;
  if (more > 0) document.getElementById("more-findings").textContent = `and ${count(more)} more`;
}

function line(place, at, number) {
  const name = data.functions[bars.function[place]];
  const text = `${moment(bars.call[place], 1000)}  process ${bars.process[place]}  ${name} ${bars.text[place]}`;
  const button = element("button", { type: "button" }, element("span", { className: "number", textContent: `${at + 1}` }), element("span", { textContent: text }));
  button.addEventListener("click", () => {
    choose(number, [place]);
    reach(place);
  });
  return element("li", {}, button);
}

function choose(number, places = data.findings[number].operations) {
  view.finding = number;
  document.querySelectorAll("#findings > li").forEach((item, at) => item.classList.toggle("chosen", at === number));
  measure();
  view.around(places);
  const rows = places.map((place) => yOf(bars.lane[place]));
  if (rows.length) frame.scrollTop = Math.max(0, (Math.min(...rows) + Math.max(...rows)) / 2 - frame.clientHeight / 2);
}

function tellFaults() {
  document.getElementById("faults-section").hidden = !data.faults.length;
  document.getElementById("recovery-note").textContent =
    "Measured from each heal on: until the first operation was ok, and until a second had half of the usual throughput " +
    (data.median_ok_a_second >= 2
      ? `(${count(data.median_ok_a_second)} ok, the median of seconds without a fault). Other faults may be in force meanwhile.`
      : "(too little happened a second to say what is usual).");
  const rows = data.faults.map((fault) => {
    const go = element("button", { type: "button", textContent: fault.kind, title: "Show it in the timeline" });
    go.addEventListener("click", () => {
      const end = fault.end ?? END;
      view.show(fault.begin - 0.3 * (end - fault.begin), end + (end - fault.begin));
      document.getElementById("timeline-title").scrollIntoView({ block: "start" });
    });
    const bit = { true: "proven", false: "did not bite" }[fault.bit] ?? "";
    return [go, fault.nodes, moment(fault.begin, END / 500), span((fault.end ?? END) - fault.begin) + (fault.end === null ? ", to the end" : ""),
      recovered(fault, fault.first_ok), data.median_ok_a_second >= 2 ? recovered(fault, fault.half) : "\u2013", [bit, fault.evidence].filter(Boolean).join(": ")];
  });
  table("faults", ["fault", "nodes", "from", "for", "first ok", "half", "evidence"], rows);
}

function recovered(fault, us) {
  if (us === 0) return "at once";
  if (us !== null) return `+${span(us)}`;
  return fault.end === null ? "\u2013" : "not before the end";
}

function table(id, names, rows) {
  const FIGURES = ["from", "for", "first ok", "half", "findings"];
  const kind = (at) => (FIGURES.includes(names[at]) ? "figure" : names[at] === "evidence" ? "wide" : "");
  document.getElementById(id).append(
    element("thead", {}, element("tr", {}, ...names.map((name, at) => element("th", { textContent: name, scope: "col", className: kind(at) })))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell, at) => element("td", { className: kind(at) }, cell))))),
  );
}

function tellObjects() {
  document.getElementById("objects-section").hidden = !verdict.objects.length;
  table("objects", ["object", "verdict", "findings"], verdict.objects.map(([name, outcome, number]) => [name || '""', `${SIGNS[outcome]} ${outcome}`, `${number}`]));
  const all = Object.values(verdict.outcomes).reduce((sum, each) => sum + each, 0);
  if (all > verdict.objects.length) document.getElementById("objects-note").textContent = `${count(verdict.objects.length)} of ${count(all)}, those that are not valid first`;
}

function tellDrawing() {
  const drawn = bars.call.length;
  if (drawn < data.total) {
    const spans = data.whole.map(([from, to]) => `${moment(from)} to ${moment(to)}`);
    const some = spans.slice(0, 4).join(", ") + (spans.length > 4 ? ", ..." : "");
    document.getElementById("drawn").textContent = `${count(drawn)} of ${count(data.total)} operations are drawn` +
      (spans.length ? `: all of them round the evidence (${some}), and of the rest` : ":") +
      " those that did not end well, the slowest, and every n-th. Plots and counts are of all.";
  }
  const samples = [["ok", OK], ["failed", FAIL], ["unknown: may happen later, or never", INFO]];
  const legend = document.getElementById("legend");
  legend.replaceChildren(...samples.map(([name, outcome]) => key(name, (pen) => drawKey(pen, outcome))),
    key("fault", (pen) => {
      pen.fillStyle = colours.band;
      pen.fillRect(0, 0, 26, 14);
      pen.fillStyle = colours.fault;
      pen.fillRect(0, 0, 26, 4);
    }));
}

function drawKey(pen, outcome) {
  pen.fillStyle = colours.of[outcome];
  if (outcome === OK) return pen.fillRect(2, 1, 22, 12);
  if (outcome === FAIL) {
    pen.fillRect(2, 7, 22, 6);
    return cross(pen, 20, 3.5, colours.fail);
  }
  pen.globalAlpha = 0.35;
  pen.fillRect(2, 1, 22, 12);
  pen.globalAlpha = 1;
  pen.fillRect(2, 1, 2, 12);
  pen.fillRect(2, 1, 22, 1.5);
  pen.fillRect(2, 11.5, 22, 1.5);
}

tellVerdict();
tellFindings();
tellFaults();
tellObjects();
view.listeners.push(tellDrawing);
document.getElementById("zoom-in").addEventListener("click", () => view.zoom(0.5));
document.getElementById("zoom-out").addEventListener("click", () => view.zoom(2));
document.getElementById("whole").addEventListener("click", () => view.show(0, END));
document.getElementById("to-witness").addEventListener("click", () => choose(Math.max(0, view.finding)));
if (data.findings.length) choose(0);
else view.show(0, END);
document.documentElement.dataset.drawn = "true";
