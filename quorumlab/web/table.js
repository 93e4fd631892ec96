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
function cell(content) {
  const { text, kind, act } = typeof content === "object" ? content : { text: content };
  const made = element("td", act ? undefined : String(text), kind);
  if (act) {
    const button = element("button", String(text));
    button.type = "button";
    button.addEventListener("click", act);
    made.append(button);
  }
  return made;
}

// Rows whose texts did not change keep their elements, and so the focus and what is selected.
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
  rows.forEach((cells, place) => {
    const key = JSON.stringify(cells);
    const old = body.rows[place];
    if (old && old.dataset.key === key) return;
    const line = element("tr");
    line.dataset.key = key;
    line.append(...cells.map(cell));
    if (old) old.replaceWith(line);
    else body.append(line);
  });
  while (body.rows.length > rows.length) body.deleteRow(-1);
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
