// The cluster as it was told: partitions by topic, and lists of brokers that rows name by number.
class Partitions {
  constructor() {
    this.topics = new Map();
    this.lists = [];
  }

  take(sent) {
    sent.lists.forEach((list, place) => { this.lists[sent.lists_from + place] = list; });
    for (const topic of sent.gone || []) this.topics.delete(topic);
    for (const [topic, rows] of Object.entries(sent.rows)) {
      const known = this.topics.get(topic) || new Map();
      for (const [index, row] of Object.entries(rows)) known.set(Number(index), row);
      this.topics.set(topic, known);
    }
  }

  // Those without a leader first, then with the fewest in sync; users' topics before Kafka's own.
  sorted(wanted) {
    const found = [];
    for (const [topic, rows] of this.topics) {
      for (const [index, row] of rows) {
        const [leader, epoch, replicas, isr] = row;
        const one = { topic, index, leader, epoch, replicas: this.lists[replicas], isr: this.lists[isr] };
        one.name = `${topic}-${index}`;
        one.missing = one.replicas.filter((broker) => !one.isr.includes(broker));
        if (!wanted || wanted(one)) found.push(one);
      }
    }
    const own = (one) => (one.topic.startsWith("__") ? 1 : 0);
    return found.sort((one, other) =>
      (one.leader >= 0) - (other.leader >= 0)
      || other.missing.length - one.missing.length
      || own(one) - own(other)
      || (one.topic < other.topic ? -1 : one.topic > other.topic ? 1 : one.index - other.index));
  }
}

function wantedBy(text) {
  const led = /^leader:(-?\d+)$/.exec(text);
  if (led) return (one) => one.leader === Number(led[1]);
  return text ? (one) => one.name.includes(text) : null;
}

// One sentence that says whether anything is wrong.
function headline(counts, brokers, controllers, isLoading) {
  if (!counts) return isLoading ? "Reading the metadata ..." : "The cluster's metadata cannot be read now";
  const troubles = [];
  if (counts.offline) troubles.push(`${number(counts.offline)} of ${number(counts.partitions)} partitions have no leader`);
  if (counts.under_replicated) troubles.push(`${number(counts.under_replicated)} lack an in-sync replica`);
  const away = brokers.filter((each) => !["running", "active"].includes(each.state));
  if (away.length) troubles.push(`broker ${names(away.map((each) => `${each.id} (${each.state})`))}`);
  const silent = controllers.filter((each) => !each.answers);
  if (silent.length) troubles.push(`controller ${names(silent.map((each) => `${each.id} (${each.role})`))}`);
  if (troubles.length) return troubles.join("; ");
  return counts.partitions
    ? `All ${number(counts.partitions)} partitions have a leader and all their replicas in sync`
    : "No partitions yet";
}

const COLOURS = ["#4e79a7", "#59a14f", "#9c755f", "#76b7b2", "#b07aa1", "#8cd17d", "#86bcb6", "#a0cbe8"];
const colourOf = (one) => {
  if (one.leader < 0) return "#d11436";
  return one.missing.length ? "#f0a500" : COLOURS[one.leader % COLOURS.length];
};

// A square for each partition, in the order of names, in the colour of its leader or its trouble.
function drawMap(canvas, partitions) {
  const inOrder = [];
  for (const topic of [...partitions.topics.keys()].sort()) {
    const rows = partitions.topics.get(topic);
    for (const index of [...rows.keys()].sort((one, other) => one - other)) {
      const [leader, , replicas, isr] = rows.get(index);
      const short = partitions.lists[replicas].length - partitions.lists[isr].length;
      inOrder.push({ name: `${topic}-${index}`, leader, missing: { length: short } });
    }
  }
  const width = canvas.parentElement.clientWidth - 32;
  const side = inOrder.length > 4000 ? 6 : inOrder.length > 800 ? 9 : 14;
  const across = Math.max(1, Math.floor(width / side));
  const scale = window.devicePixelRatio || 1;
  canvas.width = across * side * scale;
  canvas.height = Math.ceil(inOrder.length / across) * side * scale;
  canvas.style.width = `${across * side}px`;
  canvas.style.height = `${canvas.height / scale}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  inOrder.forEach((one, place) => {
    pen.fillStyle = colourOf(one);
    pen.fillRect((place % across) * side, Math.floor(place / across) * side, side - 1, side - 1);
  });
  canvas.pick = (x, y) => inOrder[Math.floor(y / side) * across + Math.floor(x / side)];
}

function drawLegend(list, brokers) {
  const entries = brokers.map((each) => [`led by ${each.id}`, COLOURS[each.id % COLOURS.length]]);
  entries.push(["a replica out of sync", "#f0a500"], ["no leader", "#d11436"]);
  const key = JSON.stringify(entries);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...entries.map(([text, colour]) => {
    const line = element("li");
    const square = document.createElement("canvas");
    square.width = square.height = 1;
    const pen = square.getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    line.append(square, text);
    return line;
  }));
}
