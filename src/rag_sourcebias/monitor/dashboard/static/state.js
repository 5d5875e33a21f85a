// What is shown. It stands in the address after "#", so that a view can be kept and passed on.

export const RANGES = [
  ["1h", "1 h", 3600],
  ["6h", "6 h", 6 * 3600],
  ["24h", "24 h", 24 * 3600],
  ["7d", "7 d", 7 * 86400],
  ["30d", "30 d", 30 * 86400],
  ["all", "all", null],
];

const CHOICES = {
  range: RANGES.map(([name]) => name),
  by: ["source", "style"],
  measure: ["exposure", "first"],
};

const listeners = [];
let fields = parse(location.hash);

function parse(hash) {
  const given = new URLSearchParams(hash.slice(1));
  const found = { labels: given.getAll("label").filter((pair) => pair.includes("=")), drill: null };
  for (const [name, allowed] of Object.entries(CHOICES)) {
    if (allowed.includes(given.get(name))) found[name] = given.get(name);
  }
  if (given.has("show")) {
    const number = (name) => (given.get(name) !== null && Number.isFinite(Number(given.get(name))) ? Number(given.get(name)) : null);
    found.drill = { group: given.get("group"), since: number("since"), until: number("until"), first: given.has("top") };
  }
  return found;
}

function written() {
  const out = new URLSearchParams();
  for (const name of Object.keys(CHOICES)) if (fields[name]) out.set(name, fields[name]);
  for (const label of fields.labels) out.append("label", label);
  if (fields.drill) {
    out.set("show", "retrievals");
    for (const name of ["group", "since", "until"]) {
      if (fields.drill[name] !== null) out.set(name, fields.drill[name]);
    }
    if (fields.drill.first) out.set("top", "1");
  }
  return `#${out}`;
}

/** Current choices; what was not chosen yet comes from the log. */
export function view(overview) {
  return {
    range: fields.range ?? usualRange(overview),
    by: fields.by ?? overview?.monitor?.by ?? "source",
    measure: fields.measure ?? "exposure",
    labels: fields.labels,
    drill: fields.drill,
  };
}

function usualRange(overview) {
  const until = overview?.log?.until;
  return until && overview.generated_at - until > 24 * 3600 ? "all" : "24h";
}

export function change(update) {
  fields = { ...fields, ...update };
  history.replaceState(null, "", written());
  for (const listener of listeners) listener();
}

export function onChange(listener) {
  listeners.push(listener);
}

addEventListener("hashchange", () => {
  // A link within the page, such as the one that skips to the numbers, changes no choice.
  if (!location.hash.includes("=")) return;
  fields = parse(location.hash);
  for (const listener of listeners) listener();
});

/** Parameters that every question of the view has in common. */
export function question(choice, now) {
  const out = new URLSearchParams({ by: choice.by });
  const seconds = RANGES.find(([name]) => name === choice.range)[2];
  if (seconds !== null) out.set("since", String(Math.floor(now - seconds)));
  for (const label of choice.labels) out.append("label", label);
  return out;
}
