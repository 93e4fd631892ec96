// What happened to one thing, and how long after each record every node had applied it.
function appliedCell(event, told) {
  if (!told) return { text: "no answer", kind: "warn" };
  if (event.time_ms < told.started_ms) return { text: "at its start", kind: "number note" };
  const ms = told.applied_ms[event.offset];
  if (ms !== null && ms !== undefined) return { text: `+${number(Math.max(0, ms - event.time_ms))} ms`, kind: "number" };
  if (event.offset >= told.next_offset) return { text: "not yet", kind: "bad" };
  return { text: "forgotten", kind: "number note" };
}

function storyNote(told, nodes) {
  if (told.error) return told.error;
  const times = told.events.length
    ? "For each record: how long after the leader wrote it a node had applied it. Clocks are those of the nodes; "
      + "a node that started later read the record then."
    : "Nothing is known of it any longer.";
  const silent = told.silent && told.silent.length ? ` No answer within a second from node ${names(told.silent)}.` : "";
  if (!nodes.length) return `${told.events.length ? "" : "This node saw no change of it. "}${live.source ? live.source.note : ""}`;
  return times + silent;
}

let asked = null; // what was focused when a story was asked for

function endStory() {
  byId("story").hidden = true;
  if (asked && asked.isConnected) asked.focus();
}

async function tellStory(subject) {
  const section = byId("story");
  if (!section.contains(document.activeElement)) asked = document.activeElement;
  section.hidden = false;
  section.dataset.subject = subject;
  put(byId("story-title"), `Why ${subject}`);
  put(byId("story-note"), "Reading the log ...");
  byId("story-table").replaceChildren();
  delete byId("story-table").dataset.head;
  byId("story-title").focus();
  let told;
  try {
    told = await (await fetch(`/v1/page/story?subject=${encodeURIComponent(subject)}`)).json();
  } catch (error) {
    told = { error: `The node did not answer: ${error.message}` };
  }
  if (section.dataset.subject !== subject) return;
  const events = told.events || [];
  const nodes = Object.keys(told.nodes || {}).concat((told.silent || []).map(String)).sort((one, other) => one - other);
  put(byId("story-note"), storyNote({ ...told, events }, nodes));
  if (!events.length) return;
  const titles = [live.source ? live.source.unit : "offset", "time", "what happened", ...nodes.map((node) => ({ text: `node ${node}`, kind: "number" }))];
  const rows = [...events].reverse().map((event) => [
    { text: event.offset, kind: "number" },
    clock(event.time_ms),
    event.text,
    ...nodes.map((node) => appliedCell(event, told.nodes[node])),
  ]);
  fill(byId("story-table"), titles, rows);
}
