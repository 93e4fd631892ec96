const ROWS_AT_ONCE = 100;
const LOG_MAX = 500;
const live = { head: null, partitions: new Partitions(), log: [], turn: 0, source: null };
let past = null; // {head, partitions}: what the slider stands on
let isFollowing = true;
let rowsShown = ROWS_AT_ONCE;
let drawn = null; // the partitions that are on the map

// --- what is shown -----------------------------------------------------------------------------

function facts() {
  const { head } = live;
  const shown = past ? past.head : head;
  const end = shown.end === undefined ? shown.offset + 1 : shown.end;
  const counts = shown.counts || {};
  const pairs = [
    ["partitions", number(counts.partitions)],
    ["without a leader", number(counts.offline)],
    ["a replica out of sync", number(counts.under_replicated)],
    ["active controller", head.active === null || past ? "-" : head.active],
    ["epoch", number(shown.epoch)],
    [live.source && live.source.unit === "change" ? "next change" : "log end", number(end)],
  ];
  const key = JSON.stringify(pairs);
  if (byId("facts").dataset.key === key) return;
  byId("facts").dataset.key = key;
  byId("facts").replaceChildren(...pairs.map(([name, value]) => {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  }));
}

const stateCell = (text, isWell) => ({ text, kind: isWell ? "good" : "bad" });

function showNodes() {
  const { head } = live;
  const story = (id) => () => tellStory(`broker ${id}`);
  const brokers = past ? past.head.brokers : head.brokers;
  fill(
    byId("brokers"),
    ["broker", "state", ...["leads", "out of ISR", "requests/s", "bytes/s"].map((text) => ({ text, kind: "number" }))],
    brokers.map((each) => [
      { text: each.id, act: story(each.id) },
      stateCell(each.state, ["running", "active"].includes(each.state)),
      { text: number(each.led), kind: "number" },
      { text: number(each.out_of_isr), kind: each.out_of_isr ? "number warn" : "number" },
      { text: number(each.requests), kind: "number" },
      { text: bytes(each.bytes), kind: "number" },
    ]),
  );
  fill(
    byId("controllers"),
    ["node", "role", ...["epoch", "behind", "behind, ms"].map((text) => ({ text, kind: "number" }))],
    head.controllers.map((each) => [
      each.id,
      stateCell(each.role, each.answers),
      { text: number(each.epoch), kind: "number" },
      { text: number(each.lag_records), kind: "number" },
      { text: number(each.lag_ms), kind: "number" },
    ]),
  );
  put(byId("note"), past ? "As they are now: the log says nothing of them." : head.note);
  byId("quorum").hidden = !head.controllers.length && !head.note;
  drawLegend(byId("legend"), brokers);
}

function showViews() {
  const { views } = live.head;
  byId("both").hidden = !views || Boolean(past);
  if (!views) return;
  fill(byId("views"), ["", "Metadata", "DescribeQuorum"], [
    ["leads", views.metadata_controller === null ? "-" : `${views.metadata_controller} (controller)`,
      views.quorum_leader === null ? "-" : `${views.quorum_leader} (leader)`],
    ["votes", "-", names(views.voters)],
    ["brokers", names(views.metadata_brokers), `${names(views.observers)} (observers)`],
  ]);
  put(byId("views-why"), views.why);
}

function showPartitions() {
  const { partitions } = past || live;
  const found = partitions.sorted(wantedBy(byId("filter").value.trim()));
  const titles = ["partition", { text: "leader", kind: "number" }, { text: "epoch", kind: "number" }, "ISR", "replicas", "trouble"];
  fill(byId("partitions"), titles, found.slice(0, rowsShown).map((one) => [
    { text: one.name, act: () => tellStory(one.name) },
    { text: one.leader < 0 ? "none" : one.leader, kind: one.leader < 0 ? "number bad" : "number" },
    { text: one.epoch, kind: "number" },
    names(one.isr),
    names(one.replicas),
    one.leader < 0 ? { text: "no leader", kind: "bad" }
      : { text: one.missing.length ? `not in sync: ${names(one.missing)}` : "", kind: "warn" },
  ]));
  const shown = Math.min(rowsShown, found.length);
  put(byId("partitions-note"), `${number(shown)} of ${number(found.length)} shown, those in trouble first`);
  byId("more").hidden = shown === found.length;
  drawMap(byId("map"), partitions);
}

function showTime() {
  const { head, source } = live;
  const slider = byId("at");
  const end = head.end === null ? 0 : head.end - 1;
  slider.disabled = head.end === null;
  slider.max = end;
  if (isFollowing) slider.value = end;
  document.body.classList.toggle("past", !isFollowing);
  byId("now").setAttribute("aria-pressed", String(isFollowing));
  const unit = source ? source.unit : "offset";
  slider.setAttribute("aria-valuetext", `${unit} ${slider.value} of ${end}`);
  const name = source ? source.name : "log";
  put(byId("time-title"), `Time: the ${name}`);
  if (isFollowing) put(byId("moment"), `Live. Move the slider to see the cluster after any ${unit} of the ${name}. ${source ? source.note : ""}`);
  else if (past) {
    const last = past.head.log.length ? past.head.log[past.head.log.length - 1] : null;
    const what = last && last[0] === past.head.offset ? `: ${last[1]}` : "";
    const limits = past.head.problems.map((each) => `; ${each}`).join("");
    put(byId("moment"), `As it was after ${unit} ${number(past.head.offset)} of ${number(end)}, ${clock(past.head.time_ms, true)}${what}${limits}`);
  }
}

function showLog() {
  const lines = (past ? past.head.log : live.log).slice(-LOG_MAX).reverse();
  const list = byId("log");
  const key = `${lines.length} ${lines.length ? lines[0][0] : ""} ${lines.length ? lines[lines.length - 1][0] : ""}`;
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  const known = new Map([...list.children].map((line) => [line.textContent, line]));
  const wanted = lines.map(([, text, subject]) => {
    if (known.has(text)) return known.get(text);
    const line = element("li", subject ? undefined : text);
    if (subject) line.append(pressable(text, () => tellStory(subject)));
    return line;
  });
  const stays = new Set(wanted);
  for (const line of known.values()) if (!stays.has(line)) line.remove();
  wanted.forEach((line, place) => { if (list.children[place] !== line) list.insertBefore(line, list.children[place] || null); });
}

function show() {
  const { head } = live;
  const shown = past ? past.head : head;
  const text = headline(shown.counts, shown.brokers, past ? [] : head.controllers, head.loading);
  put(byId("headline"), past ? `Then: ${text}` : text);
  document.title = `${text} - quorumlab`;
  put(byId("cluster"), `quorumlab ${head.cluster ? `cluster ${head.cluster}` : ""}`);
  put(byId("trouble"), head.problem || "");
  put(byId("chaos"), head.chaos);
  document.documentElement.dataset.drawn = "true";
  facts();
  showTime();
  showNodes();
  showViews();
  showLog();
  const partitions = (past || live).partitions;
  if (drawn !== partitions || partitions.isNew) {
    drawn = partitions;
    partitions.isNew = false;
    showPartitions();
  }
}

// --- what comes in -----------------------------------------------------------------------------

function take(sent, isWhole) {
  if (sent.error) {
    put(byId("trouble"), sent.error);
    if (isWhole) setTimeout(connect, 3000);
    return;
  }
  if (isWhole) {
    live.partitions = new Partitions();
    live.log = [];
    live.source = sent.source;
  } else if (sent.turn <= live.turn) return;
  live.turn = sent.turn;
  live.head = sent;
  live.partitions.take(sent);
  live.partitions.isNew = isWhole || live.partitions.isNew || Object.keys(sent.rows).length + (sent.gone || []).length > 0;
  live.log = live.log.concat(sent.log).slice(-LOG_MAX);
  sent.rows = null;
  show();
}

let events = null; // none while nobody looks: browsers allow six connections to a node

function connect() {
  if (events) events.close();
  if (document.hidden) return;
  events = new EventSource("/v1/page/events");
  const lamp = (text, kind) => { put(byId("link"), text); byId("link").className = `lamp ${kind}`; };
  events.addEventListener("whole", (event) => { lamp("live", "live"); take(JSON.parse(event.data), true); });
  events.addEventListener("change", (event) => take(JSON.parse(event.data), false));
  events.addEventListener("trouble", (event) => put(byId("trouble"), JSON.parse(event.data)));
  events.addEventListener("error", () => {
    lamp("no connection, trying again", "lost");
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  });
}

document.addEventListener("visibilitychange", connect);

// --- the slider --------------------------------------------------------------------------------

let wanted = null; // the offset that is asked for next
let isAsking = false;

async function goTo(offset) {
  isFollowing = false;
  wanted = offset;
  if (isAsking) return;
  isAsking = true;
  while (wanted !== null) {
    const asked = wanted;
    wanted = null;
    try {
      const head = await (await fetch(`/v1/page/past?offset=${asked}`)).json();
      if (head.error) throw new Error(head.error);
      if (isFollowing) break;
      past = { head, partitions: new Partitions() };
      past.partitions.take(head);
      past.partitions.isNew = true;
      byId("at").min = head.first;
      show();
    } catch (error) {
      put(byId("moment"), `That moment cannot be shown: ${error.message}`);
    }
  }
  isAsking = false;
}

function goLive() {
  isFollowing = true;
  wanted = null;
  past = null;
  if (live.head) show();
}

function step(by) {
  const slider = byId("at");
  slider.value = Number(slider.value) + by;
  goTo(Number(slider.value));
}

byId("at").addEventListener("input", (event) => goTo(Number(event.target.value)));
byId("back").addEventListener("click", () => step(-1));
byId("on").addEventListener("click", () => step(1));
byId("now").addEventListener("click", goLive);
byId("filter").addEventListener("input", () => { rowsShown = ROWS_AT_ONCE; showPartitions(); });
byId("more").addEventListener("click", () => { rowsShown += 5 * ROWS_AT_ONCE; showPartitions(); });
byId("story-close").addEventListener("click", endStory);
byId("story").addEventListener("keydown", (event) => { if (event.key === "Escape") endStory(); });
byId("map").addEventListener("click", (event) => {
  const one = event.target.pick(event.offsetX, event.offsetY);
  if (one) tellStory(one.name);
});
window.addEventListener("resize", () => { if (live.head) showPartitions(); });
connect();
