"use strict";
// Elements are made of text, never of markup: names in a cluster are anybody's.
const byId = (id) => document.getElementById(id);
const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// A cell is a text, or {text, kind, act}: `kind` is a class, `act` is called when it is pressed.
function cell(content, isName) {
  const { text, kind, act } = typeof content === "object" ? content : { text: content };
  const made = element(isName ? "th" : "td", act ? undefined : String(text), kind);
  if (isName) made.scope = "row";
  if (act) made.append(pressable(text, act));
  return made;
}

function pressable(text, act) {
  const button = element("button", String(text));
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

// Cells whose texts did not change keep their elements. Where the focused one goes, for its row has
// moved, the focus follows.
function fill(table, titles, rows) {
  const head = JSON.stringify(titles);
  if (table.dataset.head !== head) {
    table.dataset.head = head;
    const line = element("tr");
    for (const title of titles) {
      const made = element("th", title.text === undefined ? title : title.text, title.kind);
      made.scope = "col";
      line.append(made);
    }
    const top = element("thead");
    top.append(line);
    table.replaceChildren(top, element("tbody"));
  }
  const body = table.tBodies[0];
  const focused = body.contains(document.activeElement) ? document.activeElement : null;
  rows.forEach((cells, place) => {
    const line = body.rows[place] || body.insertRow();
    cells.forEach((content, at) => {
      const key = JSON.stringify(content);
      const old = line.cells[at];
      if (old && old.dataset.key === key) return;
      const made = cell(content, at === 0);
      made.dataset.key = key;
      if (old) old.replaceWith(made);
      else line.append(made);
    });
  });
  while (body.rows.length > rows.length) body.deleteRow(-1);
  if (!focused || focused.isConnected) return;
  const moved = [...body.querySelectorAll("button")].find((each) => each.textContent === focused.textContent);
  if (moved) moved.focus();
}

const number = (value) => (value === null || value === undefined ? "-" : Math.round(value).toLocaleString("en"));
const names = (list) => (list && list.length ? list.join(", ") : "-");

function bytes(value) {
  if (value === null || value === undefined) return "-";
  const units = ["B", "kB", "MB", "GB"];
  let place = 0;
  for (; value >= 1000 && place < units.length - 1; place += 1) value /= 1000;
  return `${value < 10 && place ? value.toFixed(1) : Math.round(value)} ${units[place]}`;
}

function clock(ms, withDay) {
  if (ms === null || ms === undefined || ms < 0) return "-";
  const text = new Date(ms).toISOString();
  return withDay ? text.replace("T", " ") : text.slice(11, 23);
}
